/* mutants.c: the symbol of a deliberately wrong plugin: finds the fault that its file is named
 * after, and wraps the entries of the cpu plugin with it. */
#include "mutant.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const mutant *fault;

static const mutant *mutant_find(const char *name)
{
    const mutant *const tables[] = {
        mutants_batch,    mutants_order,    mutants_memory,   mutants_kernel,   mutants_arithmetic,
        mutants_gemm,     mutants_threaded, mutants_values,   mutants_control,  mutants_process,
        mutants_mapping,  mutants_kinds,    mutants_failures, mutants_external, mutants_foreign,
        mutants_commands, mutants_leaks,    mutants_left,     mutants_claims,   mutants_joined,
        mutants_seldom,   mutants_families, mutants_pairs,    mutants_authors};
    for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        for (const mutant *one = tables[i]; one->name != NULL; one++) {
            if (strcmp(one->name, name) == 0) {
                return one;
            }
        }
    }
    return NULL;
}

void mutant_await_change(const _Atomic uint64_t *place, uint64_t own)
{
    enum { MOST_IN_VAIN = 64, TURNS = 200 };
    static _Atomic uint32_t in_vain;
    for (uint32_t turn = 0; in_vain < MOST_IN_VAIN && *place == own; turn++) {
        if (turn == TURNS) {
            in_vain++;
            return;
        }
        usleep(100);
    }
}

static hal_status mutant_submit(hal_plugin_queue *queue, const hal_batch *batch,
                                const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    wrap_batch copy;
    if (!wrap_batch_copy(&copy, batch)) {
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: no memory for a batch");
    }
    fault->batch(&copy);
    const hal_status status = wrap_inside()->submit(queue, &copy.batch, waits, wait_count, value);
    wrap_batch_free(&copy);
    return status;
}

static hal_status mutant_kernel_create(hal_plugin_device *device, const hal_ir_kernel *ir,
                                       hal_plugin_kernel **kernel)
{
    wrap_ir copy;
    if (!wrap_ir_copy(&copy, ir, ir->record_count * MUTANT_ROOM)) {
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: no memory for a kernel");
    }
    if (fault->ir) {
        fault->ir(&copy);
    }
    const bool is_meant = fault->record && (!fault->kernel || strcmp(copy.ir.names + copy.ir.name,
                                                                     fault->kernel) == 0);
    for (uint32_t i = 0; is_meant && i < copy.ir.record_count; i++) {
        if (copy.records[i].opcode == fault->opcode &&
            (fault->type == HAL_TYPE_NONE || copy.records[i].type == fault->type)) {
            i = fault->record(&copy, i);
        }
    }
    const hal_status status = wrap_inside()->kernel_create(device, &copy.ir, kernel);
    wrap_ir_free(&copy);
    return status;
}

static hal_status mutant_gemm(hal_plugin_device *device, const hal_gemm_description *description,
                              hal_plugin_kernel **kernel, uint64_t *workspace_bytes)
{
    hal_gemm_description altered = *description;
    fault->gemm(&altered);
    return wrap_inside()->gemm(device, &altered, kernel, workspace_bytes);
}

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    static const char prefix[] = "mutant_";
    const char *name = wrap_name();
    fault = strncmp(name, prefix, strlen(prefix)) == 0 ? mutant_find(name + strlen(prefix)) : NULL;
    const bool takes_any = fault && fault->takes_any_major;
    wrap_table *table =
        wrap_open(WRAP_TARGET, takes_any ? HAL_PLUGIN_ABI : host_abi, host, instance);
    if (!table) {
        return NULL;
    }
    if (!fault) {
        host->log(host, HAL_LOG_ERROR, "a mutant of an unknown name");
        return NULL;
    }
    if (fault->table) {
        fault->table(table);
    }
    table->submit = fault->batch ? mutant_submit : table->submit;
    if (fault->ir || fault->record) {
        table->kernel_create = mutant_kernel_create;
    }
    table->gemm = fault->gemm ? mutant_gemm : table->gemm;
    if (fault->is_fresh) {
        hal_plugin *fresh = malloc(sizeof(*fresh));
        return !fresh ? NULL : memcpy(fresh, wrap_plugin(table), sizeof(*fresh));
    }
    return wrap_plugin(table);
}

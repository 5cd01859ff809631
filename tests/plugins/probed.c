/* Plugins as those of hardware whose driver is right or wrong, for test_probe. The cpu plugin:
 *   hal_probed_right.so   everything is right
 *   hal_probed_alone.so   the same, but the device cannot be opened by hal-probe
 *   hal_probed_wrong.so   subgroups give wrong sums, a kernel with 64-bit atomics crashes, one that
 *                         stores f16 never ends
 *   hal_probed_silent.so  a kernel that stores f16 closes all files and never ends
 *   hal_probed_shy.so     claims nothing in the process of hal-probe
 *   hal_probed_folds.so   x + 0 is x, so that -0 + 0 is -0
 *   hal_probed_noisy.so   everything is right, but the driver prints what hal-probe might
 * The mock plugin, which interprets:
 *   hal_probed_matrix.so        matrix units, all right
 *   hal_probed_matrix_wrong.so  those of bf16 take it for f16, of f64 add A to the product */
#include "wrap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_in_probe(void)
{
    const char *probe = getenv("HAL_PROBE");
    return probe && strcmp(probe, "off") == 0;
}

static hal_status enumerate_hardware(hal_plugin_instance *instance, hal_device_info *infos,
                                     uint32_t capacity, uint32_t *count)
{
    const hal_status status = wrap_inside()->enumerate(instance, infos, capacity, count);
    if (status == HAL_OK && capacity > 0) {
        infos[0].kind = HAL_DEVICE_VIRTUAL;
        if (strstr(wrap_name(), "shy") && is_in_probe()) {
            infos[0].subgroup_width = 0;
            infos[0].features = 0;
            infos[0].storage_types &= ~HAL_TYPE_BIT(HAL_TYPE_F16);
        }
    }
    return status;
}

static hal_status enumerate_matrix(hal_plugin_instance *instance, hal_device_info *infos,
                                   uint32_t capacity, uint32_t *count)
{
    const hal_status status = wrap_inside()->enumerate(instance, infos, capacity, count);
    if (status == HAL_OK && capacity > 0) {
        infos[0].kind = HAL_DEVICE_VIRTUAL;
        infos[0].subgroup_width = HAL_IR_MATRIX_LANES;
        infos[0].matrix_types = HAL_TYPES_MATRIX;
        infos[0].features = HAL_FEATURE_ATOMIC_64;
    }
    return status;
}

/* hal-probe is a process that does not probe. */
static hal_status device_open_alone(hal_plugin_instance *instance, const char *id,
                                    hal_plugin_device **device)
{
    return is_in_probe() ? wrap_fail(HAL_ERROR_NO_DEVICE, "probed: another process has the device")
                         : wrap_inside()->device_open(instance, id, device);
}

static hal_status device_open_noisy(hal_plugin_instance *instance, const char *id,
                                    hal_plugin_device **device)
{
    if (is_in_probe()) {
        puts("\nwrong timestamps of the driver\nwrong storage_f16 of the driver\ndone");
        fflush(stdout);
    }
    return wrap_inside()->device_open(instance, id, device);
}

static int stores(const hal_ir_kernel *ir, hal_type type)
{
    for (uint32_t i = 0; i < ir->binding_count; i++) {
        if (ir->memories[i].type == type && (ir->memories[i].access & HAL_ACCESS_WRITE) != 0) {
            return 1;
        }
    }
    return 0;
}

static hal_status kernel_create_silent(hal_plugin_device *device, const hal_ir_kernel *ir,
                                       hal_plugin_kernel **kernel)
{
    if (stores(ir, HAL_TYPE_F16)) {
        for (int file = 0; file < 256; file++) {
            close(file);
        }
        for (;;) {
            pause();
        }
    }
    return wrap_inside()->kernel_create(device, ir, kernel);
}

static hal_status kernel_create_wrong(hal_plugin_device *device, const hal_ir_kernel *ir,
                                      hal_plugin_kernel **kernel)
{
    wrap_ir copy;
    const int is_cpu = !strstr(wrap_name(), "matrix");
    if (is_cpu && stores(ir, HAL_TYPE_U64)) {
        abort();
    }
    while (is_cpu && stores(ir, HAL_TYPE_F16)) {
        sleep(1);
    }
    if (!wrap_ir_copy(&copy, ir, 0)) {
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "probed: no memory for a kernel");
    }
    for (uint32_t i = 0; i < ir->record_count; i++) {
        hal_ir_record *record = &copy.records[i];
        if (is_cpu && record->opcode == HAL_IR_SUBGROUP_REDUCE) {
            record->aux = HAL_IR_REDUCE_MAX;
        }
        if (record->opcode == HAL_IR_MATRIX_MULTIPLY && record->aux == HAL_TYPE_BF16) {
            record->aux = HAL_TYPE_F16;
        } else if (record->opcode == HAL_IR_MATRIX_MULTIPLY && record->aux == HAL_TYPE_F64) {
            record->c = record->a;
        }
    }
    const hal_status status = wrap_inside()->kernel_create(device, &copy.ir, kernel);
    wrap_ir_free(&copy);
    return status;
}

static int is_zero(const hal_ir_kernel *ir, hal_ir_value value)
{
    const hal_ir_record *record = &ir->records[value];
    return record->opcode == HAL_IR_CONSTANT && record->type == HAL_TYPE_F32 &&
           ir->constants[record->aux] == 0;
}

static hal_status kernel_create_folds(hal_plugin_device *device, const hal_ir_kernel *ir,
                                      hal_plugin_kernel **kernel)
{
    wrap_ir copy;
    if (!wrap_ir_copy(&copy, ir, 0)) {
        return wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "probed: no memory for a kernel");
    }
    for (uint32_t i = 0; i < ir->record_count; i++) {
        hal_ir_record *record = &copy.records[i];
        if (record->opcode == HAL_IR_ADD && is_zero(ir, record->b)) {
            record->opcode = HAL_IR_MIN; /* of x and x */
            record->b = record->a;
        }
    }
    const hal_status status = wrap_inside()->kernel_create(device, &copy.ir, kernel);
    wrap_ir_free(&copy);
    return status;
}

const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
                                    hal_plugin_instance **instance)
{
    wrap_table *table = wrap_open(WRAP_TARGET, host_abi, host, instance);
    if (table) {
        const char *name = wrap_name();
        table->enumerate = strstr(name, "matrix") ? enumerate_matrix : enumerate_hardware;
        if (strstr(name, "alone")) {
            table->device_open = device_open_alone;
        }
        if (strstr(name, "wrong")) {
            table->kernel_create = kernel_create_wrong;
        }
        if (strstr(name, "folds")) {
            table->kernel_create = kernel_create_folds;
        }
        if (strstr(name, "silent")) {
            table->kernel_create = kernel_create_silent;
        }
        if (strstr(name, "noisy")) {
            table->device_open = device_open_noisy;
        }
    }
    return wrap_plugin(table);
}

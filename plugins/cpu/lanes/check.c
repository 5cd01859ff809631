/* Checked kernels: the IR that they keep, and the message for an access outside its memory. */
#include "lanes/check.h"

#include "status.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *copy_bytes(const void *data, size_t bytes)
{
    void *copy = malloc(bytes + 1);
    if (copy && bytes > 0) {
        memcpy(copy, data, bytes);
    }
    return copy;
}

static const char *access_verb(uint32_t opcode)
{
    switch (opcode) {
    case HAL_IR_STORE:
        return "stores to";
    case HAL_IR_ATOMIC:
        return "updates";
    case HAL_IR_ASYNC_COPY:
        return "copies from or to";
    default:
        return "loads";
    }
}

bool cpu_check_wanted(void)
{
    return kit_host()->flags & HAL_HOST_VALIDATE;
}

cpu_check *cpu_check_create(const hal_ir_kernel *ir)
{
    cpu_check *check = calloc(1, sizeof(*check));
    if (!check) {
        return NULL;
    }
    check->records = copy_bytes(ir->records, ir->record_count * sizeof(*ir->records));
    check->memories = copy_bytes(ir->memories, ir->memory_count * sizeof(*ir->memories));
    check->names = copy_bytes(ir->names, ir->name_bytes);
    check->reported = calloc(ir->record_count + 1, sizeof(*check->reported));
    check->name = ir->name;
    check->host = kit_host();
    memcpy(check->group_size, ir->group_size, sizeof(check->group_size));
    if (!check->records || !check->memories || !check->names || !check->reported) {
        cpu_check_destroy(check);
        return NULL;
    }
    return check;
}

void cpu_check_destroy(cpu_check *check)
{
    if (check) {
        free(check->records);
        free(check->memories);
        free(check->names);
        free(check->reported);
        free(check);
    }
}

uint64_t cpu_check_bytes(const cpu_check *check, uint32_t memory)
{
    return (uint64_t)check->memories[memory].count * hal_type_size(check->memories[memory].type);
}

void cpu_check_report(const cpu_worker *worker, const cpu_step *step, uint32_t item, int64_t index)
{
    const cpu_check *check = worker->check;
    const cpu_access *access = step->access;
    const uint32_t record = step->aux, *size = check->group_size;
    if (atomic_exchange(&check->reported[record], 1)) {
        return;
    }
    const uint64_t count = worker->bytes[access->memory] / hal_type_size(access->type);
    char width[32] = "";
    if (access->width > 1) {
        snprintf(width, sizeof(width), "%u elements from ", access->width);
    }
    char text[512];
    snprintf(text, sizeof(text),
             "kernel %.60s: instruction %u %s %selement %lld of %s \"%.60s\", which has %llu; "
             "work-item (%u, %u, %u) of group (%u, %u, %u)",
             check->names + check->name, record, access_verb(check->records[record].opcode), width,
             (long long)(index + access->offset), access->shared ? "shared memory" : "binding",
             check->names + check->memories[access->memory].name, (unsigned long long)count,
             item % size[0], item / size[0] % size[1], item / (size[0] * size[1]), worker->group[0],
             worker->group[1], worker->group[2]);
    check->host->report(check->host, text);
}

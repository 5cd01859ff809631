/* The log of new kernels, see kernel_log.h. */
#include "kernel_log.h"

#include <string.h>
#include <xxhash.h>

/* A hash of the records: of their opcodes and types alone, or of all that they hold. */
static uint64_t records_hash(const hal_ir_kernel *ir, bool is_form)
{
    uint64_t hash = ir->record_count;
    for (uint32_t i = 0; i < ir->record_count; i++) {
        hal_ir_record record = ir->records[i];
        if (is_form) {
            record = (hal_ir_record){
                .opcode = record.opcode, .type = record.type, .width = record.width};
        }
        hash = XXH3_64bits_withSeed(&record, sizeof record, hash);
    }
    return hash;
}

void ops_kernel_log(const hal_ir_kernel *ir, bool is_recalled)
{
    uint64_t shared = 0;
    for (uint32_t i = ir->binding_count; i < ir->memory_count; i++) {
        shared += (uint64_t)ir->memories[i].count * hal_type_size(ir->memories[i].type);
    }
    const uint64_t all =
        XXH3_64bits_withSeed(ir->constants, 8u * ir->constant_count, records_hash(ir, false));
    hal_log_write(HAL_LOG_DEBUG,
                  "new kernel %s: %s, group %ux%ux%u, shared %llu, bindings %u, records %u, form "
                  "%08x, values %08x",
                  ir->names + ir->name, is_recalled ? "recalled" : "compiled", ir->group_size[0],
                  ir->group_size[1], ir->group_size[2], (unsigned long long)shared,
                  ir->binding_count, ir->record_count, (uint32_t)records_hash(ir, true),
                  (uint32_t)all);
}

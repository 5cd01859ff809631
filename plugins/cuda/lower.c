/* A kernel's PTX: what stands before the first record, the records one after the other, and the
 * declarations that are known at the end. */
#include "lower_state.h"

#include <hal/ir_uniform.h>
#include <stdio.h>
#include <string.h>

enum { SHARED_ALIGNMENT = 16 };

/* Every array begins at a multiple of what the widest access needs. */
static uint32_t place_shared(const hal_ir_kernel *kernel, uint32_t *offsets)
{
    uint32_t bytes = 0;
    for (uint32_t i = kernel->binding_count; i < kernel->memory_count; i++) {
        const hal_ir_memory *memory = &kernel->memories[i];
        bytes = (bytes + SHARED_ALIGNMENT - 1) / SHARED_ALIGNMENT * SHARED_ALIGNMENT;
        offsets[i - kernel->binding_count] = bytes;
        bytes += memory->count * hal_type_size(memory->type);
    }
    return bytes;
}

/* Room for what is known of each record, and where work-items part. */
static hal_status begin(cuda_lowering *l, void **scratch)
{
    const hal_host *host = l->body.host;
    const uint64_t count = l->kernel->record_count;
    const uint64_t addresses = count * sizeof *l->addresses, numbers = count * sizeof *l->numbers,
                   words = HAL_IR_UNIFORM_SCRATCH(count) * sizeof(uint32_t);
    uint8_t *memory = host->allocate(addresses + numbers + words + count + 1, 16);
    if (memory == NULL) {
        return host->fail(HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory to lower a kernel");
    }
    memset(memory, 0, addresses + numbers);
    *scratch = memory;
    l->addresses = (cuda_address *)memory;
    l->numbers = (uint32_t *)(memory + addresses);
    l->uniform = memory + addresses + numbers + words;
    l->blocks[0].serial = l->serials = 1;
    hal_ir_uniformity(l->kernel, (uint32_t *)(memory + addresses + numbers), l->uniform);
    return HAL_OK;
}

static int uses_subgroups(const hal_ir_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->record_count; i++) {
        const uint32_t opcode = kernel->records[i].opcode;
        if (opcode == HAL_IR_SHUFFLE || opcode == HAL_IR_SHUFFLE_XOR ||
            opcode == HAL_IR_SUBGROUP_REDUCE) {
            return 1;
        }
    }
    return 0;
}

/* The addresses of the bindings and of shared memory. */
static void begin_kernel(cuda_lowering *l)
{
    const hal_ir_kernel *kernel = l->kernel;
    const uint32_t shared_bytes = place_shared(kernel, l->shared_offsets);
    for (uint32_t i = 0; i < kernel->binding_count; i++) {
        const cuda_operand base = cuda_fresh(l, CUDA_LONG);
        l->base[i] = (uint32_t)base.bits;
        cuda_emit(l, "ld.param.u64 $, [block+$];", base, cuda_unsigned(8 * i));
        cuda_emit(l, "cvta.to.global.u64 $, $;", base, base);
    }
    if (shared_bytes > 0) {
        const cuda_operand base = cuda_fresh(l, CUDA_WORD);
        l->shared_base = (uint32_t)base.bits;
        cuda_emit(l, "mov.u32 $, shared;", base);
    }
    if (uses_subgroups(kernel)) {
        cuda_prepare_subgroups(l);
    }
}

static void scalar(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const hal_ir_scalar *s = &l->kernel->scalars[r->aux];
    cuda_emit(l, "ld.param$ $, [block+$];", cuda_bits(r->type), cuda_define(l, index),
              cuda_unsigned(8 * l->kernel->binding_count + s->offset));
}

static void lower_record(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    if (r->opcode == HAL_IR_SCALAR) {
        scalar(l, index);
        return;
    }
    if (cuda_lower_arithmetic(l, index) || cuda_lower_convert(l, index) ||
        cuda_lower_memory(l, index) || cuda_lower_control(l, index) ||
        cuda_lower_subgroup(l, index) || cuda_lower_math(l, index)) {
        return;
    }
    char message[160];
    snprintf(message, sizeof message,
             "cuda: the lowering to PTX does not know opcode %u of type %u (record %u)", r->opcode,
             r->type, index);
    l->status = l->body.host->fail(HAL_ERROR_UNSUPPORTED, message);
}

/* Version and target are the lowest that have what the text uses, so that old drivers take it; the
 * driver makes code for the card that is there. */
static void declare(const cuda_lowering *l, kit_text *text)
{
    static const char *const classes[CUDA_CLASSES] = {".pred %p", ".b16 %h", ".b32 %r",
                                                      ".b64 %l",  ".f32 %f", ".f64 %d"};
    const hal_ir_kernel *kernel = l->kernel;
    cuda_layout layout;
    cuda_lay_out(kernel, &layout);
    kit_text_add(text, ".version %s\n.target sm_%u\n.address_size 64\n",
                 l->sm >= CUDA_EARLY_SM ? "7.8"
                 : l->sm >= 75          ? "7.0"
                                        : "6.0",
                 l->sm >= CUDA_EARLY_SM ? CUDA_EARLY_SM
                 : l->sm >= 80   ? 80
                 : l->sm >= 75 ? 75
                               : 70);
    if (layout.dynamic_shared) {
        kit_text_add(text, ".extern .shared .align %d .b8 shared[];\n", SHARED_ALIGNMENT);
    }
    kit_text_add(text, ".visible .entry " CUDA_ENTRY "(");
    if (layout.parameter_bytes > 0) {
        kit_text_add(text, ".param .align 8 .b8 block[%u]", layout.parameter_bytes);
    }
    kit_text_add(text, ")\n.reqntid %u, %u, %u\n", kernel->group_size[0], kernel->group_size[1],
                 kernel->group_size[2]);
    if (kernel->groups_per_unit) {
        kit_text_add(text, ".minnctapersm %u\n", kernel->groups_per_unit);
    }
    kit_text_add(text, "{\n");
    if (layout.shared_bytes && !layout.dynamic_shared) {
        kit_text_add(text, ".shared .align %d .b8 shared[%u];\n", SHARED_ALIGNMENT,
                     layout.shared_bytes);
    }
    for (uint32_t i = 0; i < CUDA_CLASSES; i++) {
        if (l->used[i]) {
            kit_text_add(text, ".reg %s<%u>;\n", classes[i], l->used[i]);
        }
    }
    if (l->sm >= CUDA_EARLY_SM) {
        /* In a chain the kernel starts before the one in front of it is done: see chain.c. All
         * work-items wait, so that whatever follows them comes after both. */
        kit_text_add(text, "griddepcontrol.wait;\n");
    }
}

void cuda_lay_out(const hal_ir_kernel *kernel, cuda_layout *layout)
{
    uint32_t offsets[HAL_IR_MAX_SHARED];
    layout->scalars = 8 * kernel->binding_count;
    layout->parameter_bytes = layout->scalars;
    if (kernel->scalar_count > 0) { /* in rising order */
        const hal_ir_scalar *last = &kernel->scalars[kernel->scalar_count - 1];
        layout->parameter_bytes += last->offset + hal_type_size(last->type);
    }
    layout->shared_bytes = place_shared(kernel, offsets);
    layout->dynamic_shared = layout->shared_bytes > CUDA_STATIC_SHARED ? layout->shared_bytes : 0;
}

hal_status cuda_lower(const hal_ir_kernel *kernel, uint32_t sm, kit_text *text)
{
    cuda_lowering l = {.kernel = kernel, .sm = sm, .body = {.host = text->host}};
    void *scratch = NULL;
    hal_status status = begin(&l, &scratch);
    if (status != HAL_OK) {
        return status;
    }
    begin_kernel(&l);
    for (uint32_t i = 0; i < kernel->record_count && l.status == HAL_OK; i++) {
        lower_record(&l, i);
    }
    status = l.status;
    if (status == HAL_OK) {
        declare(&l, text);
        kit_text_append(text, l.body.data, l.body.length);
        kit_text_add(text, "ret;\n}\n");
        if (text->failed || l.body.failed) {
            status = text->host->fail(HAL_ERROR_OUT_OF_MEMORY,
                                      "cuda: no host memory for the text of a kernel");
        }
    }
    kit_text_release(&l.body);
    text->host->release(scratch);
    return status;
}

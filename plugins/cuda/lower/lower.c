/* The PTX of a kernel: the records in order, each by the file of its family, and then the header,
 * whose declarations are known at the end. */
#include "lower/lower.h"

#include "lower/arithmetic.h"
#include "lower/control.h"
#include "lower/convert.h"
#include "lower/math.h"
#include "lower/memory.h"
#include "lower/subgroup.h"

#include <hal/ir_uniform.h>
#include <stdio.h>
#include <string.h>

enum { SHARED_ALIGNMENT = 16 };

typedef struct ptx_target {
    uint32_t capability; /* of the device: at least */
    uint32_t target;
    const char *version;
} ptx_target;

/* The lowest version and target that have the instructions used, so that old drivers take the text;
 * the driver's assembler makes code for the actual device. */
static const ptx_target targets[] = {
    {.capability = 90, .target = 90, .version = "7.8"},
    {.capability = 80, .target = 80, .version = "7.0"},
    {.capability = 75, .target = 75, .version = "7.0"},
    {.capability = 0, .target = 70, .version = "6.0"},
};

/* Sets the offsets of the shared arrays, aligned for the widest access. Returns their bytes. */
static uint32_t shared_place(const hal_ir_kernel *kernel, uint32_t *offsets)
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

hal_status cuda_lowering_init(cuda_lowering *l, void **scratch)
{
    const hal_host *host = l->body.host;
    const uint64_t count = l->kernel->record_count;
    const uint64_t addresses = count * sizeof *l->addresses, numbers = count * sizeof *l->numbers,
                   words = HAL_IR_UNIFORM_SCRATCH(count) * sizeof(uint32_t);
    uint8_t *memory = host->allocate(host, addresses + numbers + words + count + 1, 16);
    if (!memory) {
        return host->fail(host, HAL_ERROR_OUT_OF_MEMORY, "cuda: no host memory to lower a kernel");
    }
    memset(memory, 0, addresses + numbers);
    *scratch = memory;
    l->addresses = (cuda_known_address *)memory;
    l->numbers = (uint32_t *)(memory + addresses);
    l->uniform = memory + addresses + numbers + words;
    l->blocks[0].serial = l->serials = 1;
    hal_ir_uniformity(l->kernel, (uint32_t *)(memory + addresses + numbers), l->uniform);
    return HAL_OK;
}

static bool uses_subgroups(const hal_ir_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->record_count; i++) {
        const uint32_t opcode = kernel->records[i].opcode;
        if (opcode == HAL_IR_SHUFFLE || opcode == HAL_IR_SHUFFLE_XOR ||
            opcode == HAL_IR_SUBGROUP_REDUCE) {
            return true;
        }
    }
    return false;
}

/* Loads the addresses of the bindings and of shared memory. */
static void lower_prologue(cuda_lowering *l)
{
    const hal_ir_kernel *kernel = l->kernel;
    const uint32_t shared_bytes = shared_place(kernel, l->shared_offsets);
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
        cuda_lower_lane_mask(l);
    }
}

static void lower_scalar(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    const hal_ir_scalar *s = &l->kernel->scalars[r->aux];
    cuda_emit(l, "ld.param$ $, [block+$];", cuda_bits(r->type), cuda_define(l, index),
              cuda_unsigned(8 * l->kernel->binding_count + s->offset));
}

void cuda_lower_record(cuda_lowering *l, uint32_t index)
{
    const hal_ir_record *r = &l->kernel->records[index];
    if (r->opcode == HAL_IR_SCALAR) {
        lower_scalar(l, index);
        return;
    }
    if (cuda_lower_arithmetic(l, index) || cuda_lower_convert(l, index) ||
        cuda_lower_memory(l, index) || cuda_lower_control(l, index) ||
        cuda_lower_subgroup(l, index) || cuda_lower_math(l, index)) {
        return;
    }
    char message[160];
    snprintf(message, sizeof message,
             "cuda: lowering to PTX: record %u: expected a known opcode, got opcode %u of type %u",
             index, r->opcode, r->type);
    l->status = l->body.host->fail(l->body.host, HAL_ERROR_UNSUPPORTED, message);
}

void cuda_write_registers(const cuda_lowering *l, kit_text *text)
{
    static const char *const classes[CUDA_CLASSES] = {
        [CUDA_PREDICATE] = ".pred %p", [CUDA_HALF] = ".b16 %h",  [CUDA_WORD] = ".b32 %r",
        [CUDA_LONG] = ".b64 %l",       [CUDA_FLOAT] = ".f32 %f", [CUDA_DOUBLE] = ".f64 %d",
    };
    for (uint32_t i = 0; i < CUDA_CLASSES; i++) {
        if (l->used[i]) {
            kit_text_add(text, ".reg %s<%u>;\n", classes[i], l->used[i]);
        }
    }
}

static void write_header(const cuda_lowering *l, uint32_t capability, kit_text *text)
{
    const ptx_target *target = targets;
    while (capability < target->capability) {
        target++;
    }
    const hal_ir_kernel *kernel = l->kernel;
    cuda_layout layout;
    cuda_layout_of(kernel, &layout);
    kit_text_add(text, ".version %s\n.target sm_%u\n.address_size 64\n", target->version,
                 target->target);
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
    cuda_write_registers(l, text);
    if (l->features & CUDA_FEATURE_EARLY_START) {
        /* Every work-item waits, so that a kernel after this one comes after both. */
        kit_text_add(text, "griddepcontrol.wait;\n");
    }
}

void cuda_layout_of(const hal_ir_kernel *kernel, cuda_layout *layout)
{
    uint32_t offsets[HAL_IR_MAX_SHARED];
    layout->scalars = 8 * kernel->binding_count;
    layout->parameter_bytes = layout->scalars;
    if (kernel->scalar_count > 0) { /* sorted by offset */
        const hal_ir_scalar *last = &kernel->scalars[kernel->scalar_count - 1];
        layout->parameter_bytes += last->offset + hal_type_size(last->type);
    }
    layout->shared_bytes = shared_place(kernel, offsets);
    layout->dynamic_shared = layout->shared_bytes > CUDA_STATIC_SHARED ? layout->shared_bytes : 0;
}

hal_status cuda_lower(const hal_ir_kernel *kernel, uint32_t capability, kit_text *text)
{
    cuda_lowering l = {
        .kernel = kernel, .features = cuda_features(capability), .body = {.host = text->host}};
    void *scratch = NULL;
    HAL_TRY(cuda_lowering_init(&l, &scratch));
    hal_status status = HAL_OK;
    lower_prologue(&l);
    for (uint32_t i = 0; i < kernel->record_count && l.status == HAL_OK; i++) {
        cuda_lower_record(&l, i);
    }
    status = l.status;
    if (status == HAL_OK) {
        write_header(&l, capability, text);
        kit_text_append(text, l.body.data, l.body.length);
        kit_text_add(text, "ret;\n}\n");
        if (text->failed || l.body.failed) {
            status = text->host->fail(text->host, HAL_ERROR_OUT_OF_MEMORY,
                                      "cuda: no host memory for the PTX of a kernel");
        }
    }
    kit_text_release(&l.body);
    text->host->release(text->host, scratch);
    return status;
}

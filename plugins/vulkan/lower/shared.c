/* Shared arrays. A kernel accesses one array in elements and in vectors. Where the device can
 * declare one memory with several layouts, each width has its own; elsewhere an array is
 * declared by the narrowest access, and a wider access is several of those. */
#include "lower/shared.h"

#include "lower/convert.h"

static uint32_t access_class(uint32_t width)
{
    return width >= 8 ? 3 : width >= 4 ? 2 : width >= 2 ? 1 : 0;
}

static void find_access_classes(lower *l)
{
    const hal_ir_kernel *ir = l->ir;
    for (uint32_t i = 0; i < ir->memory_count - ir->binding_count; i++) {
        l->shared[i].narrowest = LOWER_CLASSES - 1;
    }
    for (uint32_t i = 0; i < ir->record_count; i++) {
        const hal_ir_record *record = &ir->records[i];
        if ((record->opcode == HAL_IR_LOAD || record->opcode == HAL_IR_STORE ||
             record->opcode == HAL_IR_ATOMIC) &&
            hal_ir_is_shared(ir, record->aux)) {
            lower_shared *shared = &l->shared[record->aux - ir->binding_count];
            const uint32_t class =
                record->opcode == HAL_IR_ATOMIC ? 0 : access_class(record->width);
            shared->narrowest = class < shared->narrowest ? class : shared->narrowest;
            shared->widest = class > shared->widest ? class : shared->widest;
        }
    }
    for (uint32_t i = 0; i < ir->memory_count - ir->binding_count; i++) {
        /* An array whose length is not a multiple of the vector is declared narrower. */
        while (ir->memories[ir->binding_count + i].count & ((1u << l->shared[i].narrowest) - 1)) {
            l->shared[i].narrowest--;
        }
    }
}

/* Sets the offsets of the arrays, those with the widest accesses first. Returns their bytes. */
static uint32_t arrays_place(lower *l)
{
    const hal_ir_kernel *ir = l->ir;
    uint32_t end = 0;
    for (uint32_t alignment = 16; alignment > 0; alignment /= 2) {
        for (uint32_t i = 0; i < ir->memory_count - ir->binding_count; i++) {
            const hal_ir_memory *memory = &ir->memories[ir->binding_count + i];
            const uint32_t size = hal_type_size(memory->type);
            if (size << l->shared[i].widest == alignment) {
                end = (end + alignment - 1) / alignment * alignment;
                l->shared[i].offset = end;
                end += memory->count * size;
            }
        }
    }
    return end;
}

/* Declares a variable for an array of vectors of a class. A view is a struct with the array at its
 * offset; all views start at the same address, and so overlap. */
static uint32_t array_declare(lower *l, uint32_t array, uint32_t class, const lower_access *access)
{
    spirv_writer *w = &l->writer;
    const hal_ir_memory *memory = &l->ir->memories[l->ir->binding_count + array];
    const uint32_t type = lower_vector(l, access->type, access->count);
    const uint32_t length = lower_u32(l, (memory->count + (1u << class) - 1) >> class);
    uint32_t whole = spirv_id(w);
    EMIT(w, SPIRV_DECLARATIONS, SPV_OP_TYPE_ARRAY, whole, type, length);
    if (l->views) {
        const uint32_t block = spirv_id(w);
        EMIT(w, SPIRV_DECORATIONS, SPV_OP_DECORATE, whole, SPV_DECORATION_ARRAY_STRIDE,
             access->bytes * access->count);
        EMIT(w, SPIRV_DECORATIONS, SPV_OP_MEMBER_DECORATE, block, 0, SPV_DECORATION_OFFSET,
             l->shared[array].offset);
        EMIT(w, SPIRV_DECORATIONS, SPV_OP_DECORATE, block, SPV_DECORATION_BLOCK);
        EMIT(w, SPIRV_DECLARATIONS, SPV_OP_TYPE_STRUCT, block, whole);
        whole = block;
    }
    const uint32_t variable = spirv_id(w);
    EMIT(w, SPIRV_DECLARATIONS, SPV_OP_VARIABLE, lower_pointer(l, SPV_STORAGE_WORKGROUP, whole),
         variable, SPV_STORAGE_WORKGROUP);
    if (l->views) {
        EMIT(w, SPIRV_DECORATIONS, SPV_OP_DECORATE, variable, SPV_DECORATION_ALIASED);
    }
    l->interface[l->interface_count++] = variable;
    return variable;
}

void lower_declare_shared(lower *l)
{
    if (l->ir->memory_count == l->ir->binding_count) {
        return;
    }
    find_access_classes(l);
    const uint32_t bytes = arrays_place(l);
    l->views = l->target->shared_views && bytes <= l->target->shared_bytes;
    if (l->views) {
        spirv_capability(&l->writer, SPV_CAPABILITY_WORKGROUP_LAYOUT);
        spirv_extension(&l->writer, "SPV_KHR_workgroup_memory_explicit_layout");
    }
}

uint32_t lower_shared_class(const lower *l, uint32_t memory, uint32_t width)
{
    return l->views ? access_class(width) : l->shared[memory - l->ir->binding_count].narrowest;
}

/* Element a + imm is in the array, so 32 bits of each are enough. */
uint32_t lower_shared_pointer(lower *l, const hal_ir_record *record, uint32_t class, uint32_t part,
                              const lower_access *access)
{
    spirv_writer *w = &l->writer;
    const uint32_t u32 = lower_int(l, 32), array = record->aux - l->ir->binding_count;
    const uint32_t type = lower_vector(l, access->type, access->count);
    const uint32_t pointer = lower_pointer(l, SPV_STORAGE_WORKGROUP, type);
    uint32_t *variable = &l->shared[array].variables[class];
    if (*variable == 0) {
        *variable = array_declare(l, array, class, access);
    }
    uint32_t index = lower_cast(l, l->ir->records[record->a].type, HAL_TYPE_U32, l->ids[record->a]);
    uint32_t offset = (uint32_t)record->imm;
    const int whole = (offset & ((1u << class) - 1)) == 0;
    if (!whole) { /* then a is not a multiple of the vector either */
        index = RESULT(w, SPV_OP_I_ADD, u32, index, lower_u32(l, offset));
        offset = 0;
    }
    if (class > 0) {
        index = RESULT(w, SPV_OP_SHIFT_RIGHT_LOGICAL, u32, index, lower_u32(l, class));
    }
    const uint32_t further = (uint32_t)((int32_t)offset >> class) + part;
    if (further != 0) {
        index = RESULT(w, SPV_OP_I_ADD, u32, index, lower_u32(l, further));
    }
    return l->views ? RESULT(w, SPV_OP_ACCESS_CHAIN, pointer, *variable, lower_u32(l, 0), index)
                    : RESULT(w, SPV_OP_ACCESS_CHAIN, pointer, *variable, index);
}

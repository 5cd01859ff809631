/* Fuzz target: the builder. Bytes are a program of calls with any operands, also wrong ones. The
 * builder checks each record as it is appended: a kernel that it gives out has to pass the
 * verifier, which checks all of them in their final order, and the legaliser. Run by ./dev check as
 * the ctest fuzz_ir_build. */
#include <hal/ir_build.h>
#include <stdlib.h>

#include "ir/legalise.h"

enum { MOST_CALLS = 96, VALUES = 16 };

typedef struct machine {
    const uint8_t *data, *end;
    hal_ir_builder *builder;
    hal_ir_value values[VALUES]; /* results of calls, in a ring */
    uint32_t made;
} machine;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t next(machine *m)
{
    return m->data < m->end ? *m->data++ : 0;
}

static hal_ir_value value(machine *m)
{
    const uint32_t byte = next(m);
    return byte == 255 ? HAL_IR_NONE : byte >= 240 ? byte - 240 : m->values[byte % VALUES];
}

static hal_ir_value guard(machine *m)
{
    return next(m) % 2 ? value(m) : HAL_IR_NONE;
}

static void declare(machine *m)
{
    char name[2] = {(char)('a' + next(m) % 26), 0};
    const hal_type type = (hal_type)(next(m) % (HAL_TYPE_COUNT + 1));
    switch (next(m) % 4) {
    case 0:
        hal_ir_binding(m->builder, name, type, 1 + next(m) % 3);
        break;
    case 1:
        hal_ir_shared(m->builder, name, type, next(m));
        break;
    case 2:
        m->values[m->made++ % VALUES] = hal_ir_scalar_value(m->builder, name, type);
        break;
    default:
        hal_ir_group_size(m->builder, next(m), 1 + next(m) % 4, 1);
    }
}

static hal_ir_value leading(machine *m)
{
    const uint32_t number = next(m);
    switch (next(m) % 4) {
    case 0:
        return hal_ir_id(m->builder, HAL_IR_LOCAL_ID + number % 4, next(m) % 4);
    case 1:
        return hal_ir_input(m->builder, number % 8, (hal_type)(next(m) % HAL_TYPE_COUNT));
    case 2:
        return hal_ir_bool(m->builder, (int)(number % 2));
    default:
        return hal_ir_number(m->builder, (hal_type)(next(m) % HAL_TYPE_COUNT),
                             (double)number - 2);
    }
}

static hal_ir_value memory_access(machine *m)
{
    const hal_ir_memory_id memory = next(m) % 6;
    const hal_ir_value index = value(m);
    const uint32_t width = 1u << next(m) % 4;
    switch (next(m) % 4) {
    case 0:
        return hal_ir_load_wide(m->builder, memory, index, (int32_t)next(m), width, guard(m));
    case 1:
        hal_ir_store_wide(m->builder, memory, index, (int32_t)next(m), guard(m), value(m));
        return HAL_IR_NONE;
    case 2:
        return hal_ir_atomic(m->builder, next(m) % HAL_IR_ATOMIC_COUNT, memory, index, guard(m),
                             value(m), guard(m));
    default:
        hal_ir_async_copy(m->builder, memory, index, next(m) % 6, value(m), width, guard(m));
        return HAL_IR_NONE;
    }
}

static hal_ir_value control(machine *m)
{
    switch (next(m) % 10) {
    case 0:
        return hal_ir_var(m->builder, value(m));
    case 1:
        return hal_ir_get(m->builder, value(m));
    case 2:
        hal_ir_set(m->builder, value(m), value(m));
        return HAL_IR_NONE;
    case 3:
        return hal_ir_for(m->builder, value(m), value(m), value(m));
    case 4:
        hal_ir_if(m->builder, value(m));
        return HAL_IR_NONE;
    case 5:
        hal_ir_else(m->builder);
        return HAL_IR_NONE;
    case 6:
        hal_ir_barrier(m->builder);
        return HAL_IR_NONE;
    case 7:
        hal_ir_async_commit(m->builder);
        hal_ir_async_wait(m->builder, next(m) % 3);
        return HAL_IR_NONE;
    default:
        hal_ir_end(m->builder);
        return HAL_IR_NONE;
    }
}

static hal_ir_value operation(machine *m)
{
    const uint32_t opcode = next(m);
    hal_ir_value elements[8];
    switch (next(m) % 10) {
    case 0:
        return hal_ir_unary(m->builder, opcode, value(m));
    case 1:
        return hal_ir_ternary(m->builder, opcode, value(m), value(m), value(m));
    case 2:
        return hal_ir_cast(m->builder, (hal_type)(opcode % HAL_TYPE_COUNT), value(m));
    case 3:
        return hal_ir_narrow(m->builder, (hal_type)(opcode % HAL_TYPE_COUNT), value(m));
    case 4:
        for (uint32_t i = 0; i < 8; i++) {
            elements[i] = opcode & 16 ? value(m) : m->values[opcode % VALUES];
        }
        return hal_ir_pack(m->builder, 1u << opcode % 4, elements);
    case 5:
        return hal_ir_extract(m->builder, value(m), opcode % 8);
    case 6:
        return hal_ir_shuffle(m->builder, value(m), value(m));
    case 7:
        return hal_ir_subgroup_reduce(m->builder, opcode % 4, value(m));
    case 8:
        return hal_ir_matrix_multiply(m->builder, (hal_type)(opcode % HAL_TYPE_COUNT), value(m),
                                      value(m), value(m));
    default:
        return hal_ir_binary(m->builder, opcode, value(m), value(m));
    }
}

static void call(machine *m)
{
    hal_ir_value made = HAL_IR_NONE;
    switch (next(m) % 8) {
    case 0:
        declare(m);
        break;
    case 1:
        made = leading(m);
        break;
    case 2:
        made = memory_access(m);
        break;
    case 3:
        made = control(m);
        break;
    case 4:
        hal_ir_output(m->builder, next(m) % 4, value(m));
        break;
    default:
        made = operation(m);
    }
    if (made != HAL_IR_NONE) {
        m->values[m->made++ % VALUES] = made;
    }
}

static void check(const hal_ir_kernel *kernel, uint32_t lacks)
{
    const hal_device_info info = {.size = sizeof info,
                                  .name = "Fuzzed",
                                  .subgroup_width = lacks & 1 ? 0 : 32,
                                  .max_group_items = UINT32_MAX,
                                  .max_group_size = {UINT32_MAX, UINT32_MAX, UINT32_MAX},
                                  .shared_bytes = UINT32_MAX,
                                  .max_bindings = HAL_IR_MAX_BINDINGS,
                                  .max_vector_bytes = lacks & 2 ? 4 : 64,
                                  .storage_types = HAL_STORAGE_TYPES,
                                  .arithmetic_types = HAL_STORAGE_TYPES,
                                  .exactness = lacks & 4 ? 0 : 15,
                                  .features = lacks & 8 ? 0 : HAL_FEATURE_ASYNC_COPY};
    hal_ir_kernel *legal = NULL;
    if (hal_ir_verify(kernel) != HAL_OK) {
        abort();
    }
    const hal_status status = hal_ir_legalise(kernel, &info, &legal);
    if (status == HAL_OK ? hal_ir_verify(legal) != HAL_OK : status != HAL_ERROR_UNSUPPORTED) {
        abort();
    }
    hal_ir_kernel_destroy(legal);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    machine m = {.data = data, .end = data + size};
    hal_ir_kernel *kernel = NULL;
    const uint32_t form = next(&m);
    const hal_status status = form & 16 ? hal_ir_builder_create_fragment("fuzzed", &m.builder)
                                        : hal_ir_builder_create("fuzzed", &m.builder);
    for (uint32_t i = 0; i < MOST_CALLS && status == HAL_OK && m.data < m.end &&
                         hal_ir_builder_get_status(m.builder) == HAL_OK;
         i++) {
        call(&m);
    }
    if (status == HAL_OK && hal_ir_builder_finish(m.builder, &kernel) == HAL_OK) {
        check(kernel, form);
    }
    hal_ir_kernel_destroy(kernel);
    hal_ir_builder_destroy(m.builder);
    return 0;
}

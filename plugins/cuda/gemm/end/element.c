/* PTX of one element of C, see gemm/end/element.h. */
#include "gemm/end/element.h"

#include "gemm/tile/sums.h"
#include "lower/lower.h"

#include <stddef.h>

enum { MAX_RECORDS = 96 * 128 /* of all copies of the fragment */ };

static bool input_is_loaded(hal_type type)
{
    return type == HAL_TYPE_F32 || type == HAL_TYPE_F16 || type == HAL_TYPE_BF16 ||
           type == HAL_TYPE_I32 || type == HAL_TYPE_U32;
}

bool cuda_gemm_element_is_supported(const cuda_gemm_key *key, uint32_t copies)
{
    if (!key->epilogue) {
        return true;
    }
    bool supported = key->epilogue->record_count <= MAX_RECORDS / copies;
    for (uint32_t i = 0; i < key->input_count; i++) {
        supported &= input_is_loaded(key->inputs[i]);
    }
    for (uint32_t i = 0; i < key->epilogue->record_count; i++) {
        const hal_ir_record *r = &key->epilogue->records[i];
        supported &= r->opcode != HAL_IR_OUTPUT ||
                     key->epilogue->records[r->a].type == hal_type_of_value(key->type_c);
    }
    return supported;
}

void cuda_gemm_element_begin(cuda_lowering *l, hal_type type)
{
    kit_text_add(&l->body,
                 ".reg .%s %%alpha, %%beta;\n"
                 ".reg .pred %%inside;\n"
                 ".reg .b64 %%c, %%ldc, %%stride_c, %%origin, %%at, %%wide;\n"
                 ".reg .b16 %%half;\n"
                 "ld.param.b32 %%alpha, [block+%zu];\nld.param.b32 %%beta, [block+%zu];\n"
                 "ld.param.u64 %%c, [block+%zu];\ncvta.to.global.u64 %%c, %%c;\n"
                 "ld.param.u64 %%ldc, [block+%zu];\nld.param.u64 %%stride_c, [block+%zu];\n",
                 hal_type_is_integer(type) ? "b32" : "f32", offsetof(cuda_gemm_block, alpha),
                 offsetof(cuda_gemm_block, beta), offsetof(cuda_gemm_block, c),
                 offsetof(cuda_gemm_block, ldc), offsetof(cuda_gemm_block, stride_c));
}

void cuda_gemm_element_tile(kit_text *t)
{
    kit_text_add(t, "cvt.u64.u32 %%wide, %%batch;\nmul.lo.u64 %%origin, %%wide, %%stride_c;\n");
}

void cuda_gemm_element_address(kit_text *t, const cuda_gemm_key *key, const cuda_gemm_place *place)
{
    kit_text_add(t,
                 "cvt.u64.u32 %%wide, %s;\nmad.lo.u64 %%at, %%wide, %%ldc, %%origin;\n"
                 "cvt.u64.u32 %%wide, %s;\nadd.u64 %%at, %%at, %%wide;\n"
                 "mad.lo.u64 %%at, %%at, %u, %%c;\n",
                 place->row, place->column, hal_type_size(key->type_c));
}

void cuda_gemm_element_inside(kit_text *t, const cuda_gemm_place *place)
{
    kit_text_add(t,
                 "setp.lt.u32 %%inside, %s, %s;\n"
                 "setp.lt.and.u32 %%inside, %s, %s, %%inside;\n",
                 place->column, place->columns, place->row, place->rows);
}

/* Adds beta C to a value, where beta is not 0. */
static void write_old_value(cuda_lowering *l, const cuda_gemm_key *key,
                            const cuda_gemm_place *place, cuda_operand value)
{
    cuda_gemm_element_inside(&l->body, place);
    kit_text_add(&l->body, cuda_gemm_is_integer(key)
                               ? "setp.ne.and.u32 %%inside, %%beta, 0, %%inside;\n"
                               : "setp.neu.and.f32 %%inside, %%beta, 0f00000000, %%inside;\n");
    cuda_gemm_element_address(&l->body, key, place);
    const cuda_operand old = cuda_gemm_load(l, key->type_c);
    cuda_emit(l,
              cuda_gemm_is_integer(key) ? "@%inside mad.lo.u32 $, %beta, $, $;"
                                        : "@%inside fma.rn.f32 $, %beta, $, $;",
              value, old, value);
}

/* A further input of the epilogue at the element's place. */
static cuda_operand write_input(cuda_lowering *l, const cuda_gemm_key *key, uint32_t input,
                                const cuda_gemm_place *place)
{
    const hal_type type = key->inputs[input];
    const size_t offset = offsetof(cuda_gemm_block, inputs) + input * sizeof(cuda_gemm_input);
    const cuda_operand address = cuda_fresh(l, CUDA_LONG), stride = cuda_fresh(l, CUDA_LONG);
    const struct {
        const char *coordinate;
        size_t offset;
    } parts[3] = {{place->row, offsetof(cuda_gemm_input, row_stride)},
                  {place->column, offsetof(cuda_gemm_input, column_stride)},
                  {"%batch", offsetof(cuda_gemm_input, batch_stride)}};
    cuda_gemm_element_inside(&l->body, place);
    cuda_emit(l, "ld.param.u64 $, [block+$];", address,
              cuda_unsigned(offset + offsetof(cuda_gemm_input, address)));
    for (uint32_t i = 0; i < 3; i++) {
        cuda_emit(l, "ld.param.u64 $, [block+$];", stride, cuda_unsigned(offset + parts[i].offset));
        kit_text_add(&l->body, "cvt.u64.u32 %%wide, %s;\n", parts[i].coordinate);
        cuda_emit(l, "mul.lo.u64 $, $, %wide;", stride, stride);
        cuda_emit(l, "mad.lo.u64 $, $, $, $;", address, stride, cuda_unsigned(hal_type_size(type)),
                  address);
    }
    cuda_emit(l, "cvta.to.global.u64 %at, $;", address);
    return cuda_gemm_load(l, type);
}

/* The record's register is the operand. */
static void define_input(cuda_lowering *l, const cuda_gemm_key *key, uint32_t index,
                         cuda_operand value, const cuda_gemm_place *place)
{
    const hal_ir_record *r = &l->kernel->records[index];
    cuda_operand input = value;
    if (r->aux >= 4 && place->inputs && key->layouts[r->aux - 4] != 0) {
        input = cuda_gemm_input_value(key, place->inputs, r->aux - 4, place->down, place->pair,
                                      place->second);
    } else if (r->aux >= 4) {
        input = write_input(l, key, r->aux - 4, place);
    } else if (r->aux > 0) {
        const char *const places[4] = {"", place->row, place->column, "%batch"};
        input = cuda_fresh(l, CUDA_WORD);
        cuda_emit(l, "mov.u32 $, $;", input, cuda_text(places[r->aux]));
    }
    l->numbers[index] = (uint32_t)input.bits;
}

/* The fragment for one element. Returns its result. */
static cuda_operand write_fragment(cuda_lowering *l, const cuda_gemm_key *key, cuda_operand value,
                                   const cuda_gemm_place *place)
{
    cuda_operand result = value;
    for (uint32_t i = 0; i < l->kernel->record_count && l->status == HAL_OK; i++) {
        const hal_ir_record *r = &l->kernel->records[i];
        if (r->opcode == HAL_IR_INPUT) {
            define_input(l, key, i, value, place);
        } else if (r->opcode == HAL_IR_OUTPUT) {
            result = cuda_in_register(l, r->a, 0);
        } else {
            cuda_lower_record(l, i);
        }
    }
    return result;
}

cuda_operand cuda_gemm_element(cuda_lowering *l, const cuda_gemm_key *key,
                               const cuda_gemm_place *place, cuda_operand sum)
{
    const cuda_operand value = cuda_fresh(l, cuda_gemm_sum_class(key));
    cuda_emit(l,
              cuda_gemm_is_integer(key) ? "mul.lo.u32 $, $, %alpha;" : "mul.rn.f32 $, $, %alpha;",
              value, sum);
    if (key->reads_c) {
        write_old_value(l, key, place, value);
    }
    return key->epilogue ? write_fragment(l, key, value, place) : value;
}

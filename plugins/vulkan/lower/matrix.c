/* MATRIX_MULTIPLY as a product of cooperative matrices (SPV_KHR_cooperative_matrix). Which lane has
 * which element is the driver's choice; quirks.c says for which drivers the elements of a lane are
 * those of the IR, in its order.
 *
 * A matrix is filled and read by elements through a variable of the function, one for each type. */
#include "lower/matrix.h"

enum { ROWS = 16, COLUMNS = 8, DEPTH = 16, WORDS_A = 4, WORDS_B = 2, SUMS = 4 };

static uint32_t element_type(lower *l, hal_type type)
{
    spirv_writer *w = &l->writer;
    if (type == HAL_TYPE_F16) {
        return lower_float(l, 16);
    }
    spirv_extension(w, "SPV_KHR_bfloat16");
    spirv_capability(w, SPV_CAPABILITY_BFLOAT16_TYPE);
    spirv_capability(w, SPV_CAPABILITY_BFLOAT16_COOPERATIVE_MATRIX);
    return UNIQUE(w, SPV_OP_TYPE_FLOAT, 0, 16, SPV_FP_ENCODING_BFLOAT16);
}

static uint32_t matrix_type(lower *l, uint32_t element, uint32_t rows, uint32_t columns,
                            uint32_t use)
{
    return UNIQUE(&l->writer, SPV_OP_TYPE_COOPERATIVE_MATRIX, 0, element,
                  lower_u32(l, SPV_SCOPE_SUBGROUP), lower_u32(l, rows), lower_u32(l, columns),
                  lower_u32(l, use));
}

/* The variable for matrices of a type, which the first use declares. */
static uint32_t matrix_variable(lower *l, uint32_t use, uint32_t half, uint32_t type)
{
    uint32_t *variable = &l->matrices[half][use];
    if (*variable == 0) {
        *variable = spirv_id(&l->writer);
        EMIT(&l->writer, SPIRV_HEAD, SPV_OP_VARIABLE, lower_pointer(l, SPV_STORAGE_FUNCTION, type),
             *variable, SPV_STORAGE_FUNCTION);
    }
    return *variable;
}

static uint32_t element_pointer(lower *l, uint32_t variable, uint32_t element, uint32_t number)
{
    return RESULT(&l->writer, SPV_OP_ACCESS_CHAIN, lower_pointer(l, SPV_STORAGE_FUNCTION, element),
                  variable, lower_u32(l, number));
}

/* A matrix from words of two elements each. */
static uint32_t matrix_of_words(lower *l, uint32_t variable, uint32_t type, uint32_t element,
                                const uint32_t *words, uint32_t count)
{
    spirv_writer *w = &l->writer;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t word = words[count == WORDS_A ? (i >> 1 | i << 1) & 3 : i];
        const uint32_t pair = RESULT(w, SPV_OP_BITCAST, lower_vector(l, element, 2), word);
        for (uint32_t k = 0; k < 2; k++) {
            const uint32_t one = RESULT(w, SPV_OP_COMPOSITE_EXTRACT, element, pair, k);
            EMIT(w, SPIRV_BODY, SPV_OP_STORE, element_pointer(l, variable, element, 2 * i + k),
                 one);
        }
    }
    return RESULT(w, SPV_OP_LOAD, type, variable);
}

void lower_matrix_multiply(lower *l, uint32_t index)
{
    const hal_ir_record *record = &l->ir->records[index];
    spirv_writer *w = &l->writer;
    spirv_extension(w, "SPV_KHR_cooperative_matrix");
    spirv_capability(w, SPV_CAPABILITY_COOPERATIVE_MATRIX);
    const uint32_t is_half = record->aux == HAL_TYPE_F16;
    const uint32_t element = element_type(l, (hal_type)record->aux), f32 = lower_float(l, 32);
    const uint32_t type_a = matrix_type(l, element, ROWS, DEPTH, SPV_MATRIX_A);
    const uint32_t type_b = matrix_type(l, element, DEPTH, COLUMNS, SPV_MATRIX_B);
    const uint32_t type_c = matrix_type(l, f32, ROWS, COLUMNS, SPV_MATRIX_ACCUMULATOR);
    const uint32_t a = matrix_of_words(l, matrix_variable(l, SPV_MATRIX_A, is_half, type_a), type_a,
                                       element, l->parts + l->ids[record->a], WORDS_A);
    const uint32_t b = matrix_of_words(l, matrix_variable(l, SPV_MATRIX_B, is_half, type_b), type_b,
                                       element, l->parts + l->ids[record->b], WORDS_B);
    const uint32_t sums = matrix_variable(l, SPV_MATRIX_ACCUMULATOR, 0, type_c);
    for (uint32_t i = 0; i < SUMS; i++) {
        EMIT(w, SPIRV_BODY, SPV_OP_STORE, element_pointer(l, sums, f32, i),
             l->parts[l->ids[record->c] + i]);
    }
    const uint32_t c = RESULT(w, SPV_OP_LOAD, type_c, sums);
    const uint32_t product = RESULT(w, SPV_OP_COOPERATIVE_MATRIX_MUL_ADD, type_c, a, b, c);
    EMIT(w, SPIRV_BODY, SPV_OP_STORE, sums, product);
    l->ids[index] = l->part_count;
    for (uint32_t i = 0; i < SUMS; i++) {
        l->parts[l->part_count++] = RESULT(w, SPV_OP_LOAD, f32, element_pointer(l, sums, f32, i));
    }
}

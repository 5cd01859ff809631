/* Further inputs of an epilogue, loaded for a box or a piece of C at once. An input with the same
 * values in all rows of a tile, such as a bias, is loaded before the box that needs it, once for
 * both rows of a work-item; one with the same values in all columns once a tile. Two or four
 * neighbours take one access where strides allow. Inputs of other layouts are loaded element by
 * element (gemm/end/element.c). */
#ifndef PLUGINS_CUDA_GEMM_END_INPUTS_H
#define PLUGINS_CUDA_GEMM_END_INPUTS_H

#include "gemm/tile/key.h"
#include "lower/text.h"

enum {
    CUDA_GEMM_BOX_PAIRS = 8 /* of neighbouring columns that a work-item has in a box */
};

/* Two neighbours: a word with both, or a value each. */
typedef struct cuda_gemm_pair {
    bool is_packed;
    cuda_operand word, values[2];
} cuda_gemm_pair;

/* Registers of an input. The address is that of the work-item's first column, the step is the bytes
 * from one column or row to the next. */
typedef struct cuda_gemm_input_state {
    cuda_operand address, step;
    cuda_gemm_pair pairs[CUDA_GEMM_BOX_PAIRS]; /* loaded; of a piece: 0 and 1 */
    cuda_operand rows[2];                      /* loaded, the same in all columns */
} cuda_gemm_input_state;

typedef struct cuda_gemm_inputs {
    cuda_gemm_input_state of[HAL_GEMM_MAX_INPUTS];
} cuda_gemm_inputs;

/* Sets in cuda_lowering.inputs, as one is too large for small stacks. Pieces use the first ones. */
enum {
    CUDA_GEMM_INPUTS_OF_TILE,
    CUDA_GEMM_INPUTS_OF_BOX,
    CUDA_GEMM_INPUTS_OF_LOOP,
    CUDA_GEMM_INPUT_SETS = 4
};

/* Loads the element at %at as a value, 0 where %inside is false. */
cuda_operand cuda_gemm_load(cuda_lowering *l, hal_type type);

/* How an input is loaded, in a kernel of `key` for a product with `columns` columns of tiles. */
uint8_t cuda_gemm_input_layout(const cuda_gemm_key *key, const hal_gemm_input *input,
                               int64_t columns);

/* Writes what is done for a tile before its sums, and after them: addresses, and the loads for the
 * first box, of `count` pairs in a row. */
void cuda_gemm_inputs_prepare(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                              uint32_t count);
void cuda_gemm_inputs_begin(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                            uint32_t count);

/* Writes the rest of the loads for the box that begins `first` columns into the tile, whose inputs
 * are then `loaded`, and loads for the one that begins at `next`; UINT32_MAX: none. */
void cuda_gemm_inputs_box(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                          cuda_gemm_inputs *loaded, uint32_t first, uint32_t next, uint32_t count);

/* Of a loop over boxes that begins with the registers of `start`: writes that these are the next
 * ones, those of the next `columns` columns. */
void cuda_gemm_inputs_advance(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                              const cuda_gemm_inputs *start, uint32_t columns);

/* Writes the addresses for a tile that is stored by rows; the loads of the values at four
 * neighbours, whose place is that of the first one. %inside: whether they are in C. */
void cuda_gemm_inputs_begin_pieces(cuda_lowering *l, const cuda_gemm_key *key,
                                   cuda_gemm_inputs *inputs);
void cuda_gemm_inputs_piece(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                            const char *row, const char *column);

/* Writes the values of a pair, after which cuda_gemm_input_value has them. */
void cuda_gemm_inputs_unpack(cuda_lowering *l, const cuda_gemm_key *key, cuda_gemm_inputs *inputs,
                             uint32_t pair);

/* The value of an input with a layout: in row 0 or 1, of a pair its first element or the second. */
cuda_operand cuda_gemm_input_value(const cuda_gemm_key *key, const cuda_gemm_inputs *inputs,
                                   uint32_t input, uint32_t row, uint32_t pair, uint32_t second);

#endif

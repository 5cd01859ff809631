/* The lines that a sort's kernel reads: where an element of x is, for kernels of processors. */
#ifndef OPS_SRC_KERNELS_SORT_LINES_H
#define OPS_SRC_KERNELS_SORT_LINES_H

#include "fold.h"
#include "sort_call.h"
#include "tensor/bindings.h"

typedef struct ops_sort_lines {
    ops_space space;
    ops_axis axis;
    ops_layout layout;
    ops_bindings bindings;
    uint8_t x; /* its binding */
} ops_sort_lines;

/* The same in a kernel. */
typedef struct ops_sort_line_values {
    ops_layout_values values;
    hal_ir_value strides[2];
} ops_sort_line_values;

/* Binds x, then the `count` further tensors, in this order; `reserved` bytes of scalars follow
 * those of the lines. */
void ops_sort_lines_init(const ops_context *context, const ops_sort_call *c,
                         const ops_tensor *further, uint32_t count, uint32_t reserved,
                         ops_sort_lines *lines);
void ops_sort_lines_key(const ops_sort_lines *lines, ops_cache_key *key);
void ops_sort_lines_put(const ops_sort_lines *lines, ops_block *block);
void ops_sort_lines_declare(hal_ir_builder *b, const ops_sort_lines *lines,
                            ops_sort_line_values *values);

/* The index of the first element of line number `line`; that of element `place` from there. */
hal_ir_value ops_sort_lines_first(hal_ir_builder *b, const ops_sort_lines *lines,
                                  const ops_sort_line_values *values, hal_ir_value line);
hal_ir_value ops_sort_lines_place(hal_ir_builder *b, const ops_sort_lines *lines,
                                  const ops_sort_line_values *values, hal_ir_value first,
                                  hal_ir_value place);

#endif

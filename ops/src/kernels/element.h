/* The elements of a work-item of an elementwise kernel: where they are in each view, and how they
 * are loaded and stored. */
#ifndef OPS_SRC_KERNELS_ELEMENT_H
#define OPS_SRC_KERNELS_ELEMENT_H

#include "tensor/indexing.h"

/* Elements of a work-item, of all its vectors. */
#define OPS_MAX_ELEMENTS 16u

/* The elements of a work-item that are not all neighbours: rows of `vector` neighbours. */
typedef struct ops_element_rows {
    uint32_t staged, vector;
    hal_ir_memory_id memory[OPS_MAX_VIEWS]; /* of staged views, with elements at `place` */
    hal_ir_value place[OPS_MAX_ELEMENTS];
    hal_ir_value in_tile[OPS_MAX_ELEMENTS];              /* the guard of each row's places */
    hal_ir_value guard[OPS_MAX_ELEMENTS];                /* of each row */
    hal_ir_value index[OPS_MAX_VIEWS][OPS_MAX_ELEMENTS]; /* of each row's first element */
} ops_element_rows;

/* The elements of a work-item. */
typedef struct ops_element_iter {
    uint32_t width;
    const ops_element_rows *several; /* null: neighbours along the innermost dimension */
    hal_ir_value guard;              /* for loads and stores */
    const ops_layout *layout;
    const ops_layout_values *values;
    hal_ir_value index[OPS_MAX_VIEWS]; /* of the first element */
} ops_element_iter;

/* Load and store the work-item's elements of a view in the memory of its binding. */
void ops_element_load(hal_ir_builder *b, const ops_element_iter *iter, uint32_t view,
                      hal_ir_memory_id memory, hal_ir_value *elements);
void ops_element_store(hal_ir_builder *b, const ops_element_iter *iter, uint32_t view,
                       hal_ir_memory_id memory, const hal_ir_value *elements);

/* The same of `width` neighbours from an index on. */
void ops_neighbours_load(hal_ir_builder *b, hal_ir_memory_id memory, hal_ir_value index,
                         uint32_t width, hal_ir_value guard, hal_ir_value *elements);
void ops_neighbours_store(hal_ir_builder *b, hal_ir_memory_id memory, hal_ir_value index,
                          uint32_t width, hal_ir_value guard, const hal_ir_value *elements);

#endif

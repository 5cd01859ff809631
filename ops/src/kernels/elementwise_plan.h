/* What describes an elementwise kernel, for elementwise.c and the forms of kernels that it chooses
 * among. */
#ifndef OPS_SRC_KERNELS_ELEMENTWISE_PLAN_H
#define OPS_SRC_KERNELS_ELEMENTWISE_PLAN_H

#include "element.h"

#include "tensor/indexing.h"
#include "tuning/tuning.h"

/* Elements of the widest vector of a work-item. */
#define OPS_MAX_WIDTH 8u

/* Dimensions of a tile, counted from the innermost one outwards. */
#define OPS_TILE_AXES 3u

OPS_KEY_STRUCTURES_BEGIN
/* The axes of a tile in the order of a view's memory. */
typedef struct ops_tile_order {
    uint8_t axis[OPS_TILE_AXES];
    uint8_t joint; /* the first that many are one dimension, of which all but the last are whole */
} ops_tile_order;

typedef struct ops_elementwise_plan {
    const ops_transposed_tuning *tuning; /* the same in all plans of a context */
    ops_layout layout;
    uint32_t width; /* elements of a work-item */
    uint32_t group; /* work-items of a group along x */
    uint32_t lines; /* with `rows`: lines of the second innermost dimension per group, along y */
    uint8_t rows;   /* the innermost dimension has the grid's x for itself */
    uint8_t grid_may_overrun; /* with `rows`: the grid may count more rows than there are */
    uint8_t tail;             /* the last work-item has fewer elements than width */
    uint8_t ranges;           /* a group computes a range of lines, by steps */
    uint8_t masked;           /* with `ranges`: a line is shorter than a step */
    uint8_t columns;          /* with `ranges`: 0 or 2, the grid's dimension along a line; outer
                                 dimensions have the other one */
    uint8_t along_lines;      /* with `rows`: `repeat` is along the second innermost dimension */
    uint8_t reserved;
    uint32_t repeat; /* vectors of `width` elements of a work-item, `group` vectors apart, or in
                              neighbouring lines */
    uint32_t staged; /* a bit for each view that is read through shared memory */
    uint32_t staged_width;           /* neighbours that a work-item reads of these at a time */
    uint32_t tile[OPS_TILE_AXES];    /* with `staged`: elements of a group along each axis */
    ops_tile_order loaded, computed; /* with `staged`: the order of staged views, of the others */
    uint32_t full_groups;            /* that a compute unit is to hold at once; 0: no wish */
    uint32_t grid[3];                /* the first field that the key leaves out */
    uint32_t padding;
} ops_elementwise_plan;
OPS_KEY_STRUCTURES_END

typedef void (*ops_elementwise_body)(hal_ir_builder *b, const ops_element_iter *iter,
                                     const void *user);

/* What a caller does with the elements. */
typedef struct ops_elementwise_use {
    const char *function;   /* in messages */
    uint32_t widest;        /* the largest width that the caller can use */
    const uint64_t *starts; /* first elements of the views' bindings in their buffers; null: 0 */
    uint32_t reserved;      /* as in ops_layout_choose */
    int64_t reach;
    uint32_t loaded; /* a bit for each view that the body only passes to ops_element_load; then it
                        only stores by ops_element_store */
    uint8_t repeatable;    /* an element may be computed more than once: the body only reads what it
                           does not write */
    uint8_t indexed;       /* the body computes indices from elements of the last view: on a
                              processor, work-items that share such an element access neighbours */
    uint32_t work;         /* operations of an element, where they are many; 0: few */
    const uint32_t *sizes; /* bytes of the views' elements in memory; null without `loaded` */
} ops_elementwise_use;

#endif

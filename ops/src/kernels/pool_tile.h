/* Tiles of pooling and of its gradient: a work-item computes several results along each spatial
 * axis from `sources`, the elements of x or the windows of dy that they have in common, each of
 * which it reads once. Whether a result has a source is known when the kernel is emitted. */
#ifndef OPS_SRC_KERNELS_POOL_TILE_H
#define OPS_SRC_KERNELS_POOL_TILE_H

#include "index_task.h"
#include "pool_form.h"

/* Sources along an axis, and results of a work-item with all its neighbours, at most. */
#define OPS_POOL_SOURCES 80u
#define OPS_POOL_RESULTS 16u

/* Views; the last one may be missing. It is of the places of maxima, which a gradient reads, or
 * which are stored next to the maxima. The coordinates of the tile follow. */
enum { OPS_POOL_TO, OPS_POOL_FROM, OPS_POOL_PLACES_FROM, OPS_POOL_PLACES_TO = 2 };

/* Scalars of each spatial axis: the distances of its neighbours in the tensors, and how many
 * sources and results there are. */
enum {
    OPS_POOL_STEP,
    OPS_POOL_PLACE_STEP,
    OPS_POOL_TO_STEP,
    OPS_POOL_LENGTH,
    OPS_POOL_RESULT_LENGTH,
    OPS_POOL_AXIS_SCALARS
};

OPS_KEY_STRUCTURES_BEGIN
/* Source s of a work-item at coordinate g is number g * advance + first + s * pitch of its axis.
 * It is element `origin` + r * of_result + s * of_source, over the dilation, of the window of
 * result r, or that result is this element of window s. */
typedef struct ops_pool_axis {
    uint32_t window, stride, dilation;
    uint32_t tile, sources;
    uint32_t pitch, advance;
    int32_t first, origin, of_result, of_source;
    int32_t low, high;  /* averages count elements from `low` on, and up to the length of x and
                           `high`, from the start of the padding */
    uint8_t is_tested;  /* sources may be beyond their axis */
    uint8_t is_clamped; /* those are the nearest one of the window instead */
    uint8_t is_divided; /* of a gradient, with one result: its windows are a quotient, `first` is
                           the padding, and the kernel tests whether windows have the result */
    uint8_t is_ragged;  /* the last tile has fewer results */
    uint8_t is_counted; /* windows count different numbers of elements */
    uint8_t may_miss;   /* a window may have no element of x */
    uint8_t is_unit;    /* sources are neighbours in memory */
    uint8_t reserved;
} ops_pool_axis;

typedef struct ops_pool_tile {
    uint32_t rank, divisor;
    uint16_t is_joined; /* results along the last axis are stored at once */
    uint16_t has_both;  /* maxima are stored as well as places */
    ops_pool_axis axis[OPS_MAX_SPATIAL];
    double least;
} ops_pool_tile;
OPS_KEY_STRUCTURES_END

/* A kernel that is emitted. `number`: of each source (U32); `is_in`: HAL_IR_NONE: it is. */
typedef struct ops_pool_emitter {
    hal_ir_builder *b;
    const ops_element_iter *iter;
    const ops_index_body *body;
    const ops_pool_tile *tile;
    uint32_t results, lines; /* of all axes; of sources along the last one */
    hal_ir_value number[OPS_MAX_SPATIAL][OPS_POOL_SOURCES];
    hal_ir_value is_in[OPS_MAX_SPATIAL][OPS_POOL_SOURCES];
} ops_pool_emitter;

/* One kernel and its tensors. */
typedef struct ops_pool_call {
    const char *function, *name;
    uint32_t family;
    bool is_gradient;
    ops_elementwise_body body;
    const ops_pool_form *form;
    const ops_tensor *from, *places, *to; /* places: of a gradient, or null */
    const ops_tensor *places_to;          /* a second result with the strides of `to`, or null */
} ops_pool_call;

/* Chooses the tile, and finds and dispatches the kernel. */
hal_status ops_pool_record(ops_context *context, const ops_pool_call *call);

/* Starts the body of a kernel: the sources of each axis. */
void ops_pool_emit_sources(hal_ir_builder *b, const ops_element_iter *iter,
                           const ops_index_body *body, ops_pool_emitter *e);

/* Whether a result has a source, of the first `axes` axes, both numbered row-major. */
bool ops_pool_has(const ops_pool_tile *tile, uint32_t axes, uint32_t result, uint32_t source);

/* The same of results and sources of the last axis alone. */
bool ops_pool_line_has(const ops_pool_tile *tile, uint32_t result, uint32_t source);

/* The last spatial axis, along which sources are lines. */
static inline uint32_t ops_pool_last(const ops_pool_emitter *e)
{
    return e->tile->rank - 1;
}

/* The index of a line of sources in a view, whose distances are those of a scalar, and its guard;
 * lines are numbered row-major. */
hal_ir_value ops_pool_line(const ops_pool_emitter *e, uint32_t view, uint32_t scalar,
                           uint32_t line);
hal_ir_value ops_pool_line_guard(const ops_pool_emitter *e, uint32_t line);

/* Loads a source of a line. */
void ops_pool_load(const ops_pool_emitter *e, uint32_t view, uint32_t scalar, hal_ir_value line,
                   uint32_t source, hal_ir_value guard, hal_ir_value *elements);

/* The number of result `result` of the work-item along an axis, U32. */
hal_ir_value ops_pool_result(const ops_pool_emitter *e, uint32_t axis, uint32_t result);

/* The elements that an average counts in a window of an axis, that starts at `number` strides; in
 * the type of sums; of gradients at least 1, as windows that there are not give 0. */
hal_ir_value ops_pool_count(const ops_pool_emitter *e, uint32_t axis, hal_ir_value number,
                            hal_type type);

/* x over a number of elements, by a multiplication where that has the same bits. */
hal_ir_value ops_pool_divide(hal_ir_builder *b, hal_ir_value x, double count);

/* x + n * dilation for the least n >= 0 at which that is not below 0, of an I32 x. */
hal_ir_value ops_pool_first_inside(hal_ir_builder *b, hal_ir_value x, uint32_t dilation);

/* A scalar of an axis, in the type of indices. */
hal_ir_value ops_pool_scalar(const ops_pool_emitter *e, uint32_t axis, uint32_t scalar);

/* Stores the results of a work-item in a view, [results][width]. */
void ops_pool_store(const ops_pool_emitter *e, uint32_t view, hal_ir_value values[][OPS_MAX_WIDTH]);

#endif

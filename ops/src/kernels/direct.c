/* See direct.h. Images, or groups of one, are computed in pieces whose planes stay in a cache: the
 * planes are copied, the kernel of each phase sums windows, and where lanes of the result are not
 * neighbours in memory, it is copied from where they are. */
#include "direct.h"

#include "direct_any.h"
#include "direct_estimate.h"
#include "direct_kernel.h"
#include "direct_phase.h"
#include "functions.h"
#include "tensor/allocation.h"
#include "tensor/dispatch.h"
#include "tensor/indexing.h"
#include "tensor/kernel_cache.h"

#include <ops/index.h>

#include <string.h>

/* Bytes of the planes of a piece for each compute unit, and of images that are computed together
 * where x or y are copied as a whole. */
#define PIECE_BYTES (UINT64_C(1) << 19)
#define BLOCK_BYTES (UINT64_C(1) << 20)

/* A call, and what its pieces have in common. */
typedef struct direct_call {
    ops_context *context;
    const ops_direct_form *form;
    const ops_tensor *w, *bias;
    ops_tensor x, y; /* of a block of images, whose lines are contiguous */
    ops_direct_lengths lengths;
    ops_planes planes;
    bool has_zeros;   /* windows reach beyond x */
    ops_tensor image; /* [channels of a piece, planes]; no buffer: x is read as it is */
    const ops_expression *activation;
} direct_call;

/* Images, and groups of each. */
typedef struct direct_piece {
    int64_t image, images, group, groups;
} direct_piece;

/* ---- Planes ---- */

/* Whether the kernel reads x where it is: rows without zeros around them, 1 apart. */
static bool reads_image(const direct_call *call)
{
    const ops_planes *p = &call->planes;
    int64_t first, end;
    ops_span(&call->x, &first, &end);
    bool fits = call->x.stride[p->rank + 1] == 1 && end - first < INT32_MAX / 2;
    for (uint32_t i = 0; i < p->rank; i++) {
        fits = fits && p->before[i] == 0 && p->step[i] == 1 && p->cells[i] <= call->lengths.x[i];
    }
    for (uint32_t i = 0; i < call->x.rank; i++) {
        fits = fits && call->x.stride[i] >= 0;
    }
    return fits;
}

/* ---- The kernel of a phase ---- */

/* The distances of the window and of planes. */
static void key_window(const direct_call *call, const ops_direct_phase *p, ops_direct_key *k)
{
    const ops_planes *planes = &call->planes;
    const bool has_taps = ops_direct_has_taps(p, k->rank), is_copied = call->image.buffer != NULL;
    for (uint32_t i = 0; i < k->rank; i++) {
        const int64_t pitch = is_copied ? ops_planes_pitch(planes, i) : call->x.stride[i + 2];
        k->axis[i] = (ops_direct_axis){
            .taps = has_taps ? (int32_t)p->taps[i] : 0,
            .position = has_taps ? (int32_t)(p->position[i] + planes->before[i]) : 0,
            .apart = (int32_t)p->apart[i],
            .stride = (int32_t)p->stride[i],
            .step = (int32_t)planes->step[i],
            .phase = is_copied ? (int32_t)ops_planes_phase(planes, i) : 0,
            .pitch = (int32_t)pitch,
            .w_step = (int32_t)(call->w->stride[i + 3] * p->tap_step[i])};
    }
    k->chunk = has_taps ? k->chunk : 0;
    k->number[OPS_DIRECT_CHANNELS] = has_taps ? (uint32_t)call->lengths.inputs : 1;
}

static void key_operands(const direct_call *call, ops_direct_key *k)
{
    const bool is_copied = call->image.buffer != NULL;
    const uint32_t inputs = (uint32_t)call->lengths.inputs, last = k->rank - 1;
    uint32_t *n = k->number;
    n[OPS_DIRECT_X_CHANNEL] = (uint32_t)(is_copied ? call->planes.elements : call->x.stride[1]);
    n[OPS_DIRECT_X_GROUP] = inputs * n[OPS_DIRECT_X_CHANNEL];
    n[OPS_DIRECT_X_IMAGE] = is_copied ? (uint32_t)call->form->groups * n[OPS_DIRECT_X_GROUP]
                                      : (uint32_t)call->x.stride[0];
    n[OPS_DIRECT_X_DEPTH] = k->rank > 2 ? (uint32_t)k->axis[0].pitch : 0;
    n[OPS_DIRECT_X_ROW] = last > 0 ? (uint32_t)k->axis[last - 1].pitch * k->lines : 0;
    n[OPS_DIRECT_W_RESULT] = (uint32_t)call->w->stride[1];
    n[OPS_DIRECT_W_GROUP] = (uint32_t)call->w->stride[0];
    n[OPS_DIRECT_W_BLOCK] = n[OPS_DIRECT_W_RESULT] * k->results;
    n[OPS_DIRECT_W_CHANNEL] = (uint32_t)call->w->stride[2];
}

static void key_results(const direct_call *call, const ops_direct_phase *p, ops_direct_key *k)
{
    const int64_t *stride = call->y.stride + 2;
    const uint32_t outputs = (uint32_t)call->lengths.outputs, rank = k->rank;
    uint32_t *n = k->number;
    n[OPS_DIRECT_Y_IMAGE] = (uint32_t)call->y.stride[0];
    n[OPS_DIRECT_Y_RESULT] = (uint32_t)call->y.stride[1];
    n[OPS_DIRECT_Y_BLOCK] = n[OPS_DIRECT_Y_RESULT] * k->results;
    n[OPS_DIRECT_Y_GROUP] = n[OPS_DIRECT_Y_RESULT] * outputs;
    n[OPS_DIRECT_Y_COLUMN] = (uint32_t)(stride[rank - 1] * p->step[rank - 1]);
    n[OPS_DIRECT_Y_LINE] = rank > 1 ? (uint32_t)(stride[rank - 2] * p->step[rank - 2]) : 0;
    n[OPS_DIRECT_Y_ROW] = n[OPS_DIRECT_Y_LINE] * k->lines;
    n[OPS_DIRECT_Y_DEPTH] = rank > 2 ? (uint32_t)(stride[0] * p->step[0]) : 0;
    if (call->bias) {
        n[OPS_DIRECT_BIAS_RESULT] = (uint32_t)call->bias->stride[0];
        n[OPS_DIRECT_BIAS_BLOCK] = n[OPS_DIRECT_BIAS_RESULT] * k->results;
        n[OPS_DIRECT_BIAS_GROUP] = n[OPS_DIRECT_BIAS_RESULT] * outputs;
    }
}

typedef struct phase_user {
    const direct_call *call;
    const direct_piece *piece;
} phase_user;

static void task_bind(const phase_user *u, const ops_tensor *x, ops_direct_task *t)
{
    const direct_call *call = u->call;
    const ops_context *context = call->context;
    t->slots[OPS_DIRECT_X] = (uint8_t)ops_bind(context, &t->bindings, x, HAL_ACCESS_READ);
    t->slots[OPS_DIRECT_W] = (uint8_t)ops_bind(context, &t->bindings, call->w, HAL_ACCESS_READ);
    t->slots[OPS_DIRECT_Y] = (uint8_t)ops_bind(context, &t->bindings, &call->y, HAL_ACCESS_WRITE);
    if (call->bias) {
        t->slots[OPS_DIRECT_BIAS] =
            (uint8_t)ops_bind(context, &t->bindings, call->bias, HAL_ACCESS_READ);
    }
}

/* The scalars: groups are counted over all images from the first one in each memory. `first`: of
 * the outputs of a group. */
static void scalars_put(const phase_user *u, const ops_direct_phase *p, int64_t first,
                        const ops_tensor *x, const ops_direct_task *t, ops_block *block)
{
    const direct_call *call = u->call;
    const ops_direct_key *k = &t->key;
    const int64_t image = u->piece->image, group = u->piece->group;
    int64_t at[OPS_DIRECT_TENSORS] = {0};
    at[OPS_DIRECT_X] = call->image.buffer ? -group * (int64_t)k->number[OPS_DIRECT_X_GROUP]
                                          : image * call->x.stride[0];
    at[OPS_DIRECT_W] = first * call->w->stride[1];
    at[OPS_DIRECT_Y] = first * call->y.stride[1] + image * call->y.stride[0];
    at[OPS_DIRECT_BIAS] = call->bias ? first * call->bias->stride[0] : 0;
    for (uint32_t i = 0; i < k->rank; i++) {
        at[OPS_DIRECT_W] += p->tap[i] * call->w->stride[i + 3];
        at[OPS_DIRECT_Y] += p->first[i] * call->y.stride[i + 2];
    }
    const ops_tensor *tensors[OPS_DIRECT_TENSORS] = {x, call->w, &call->y, call->bias};
    ops_block_begin(block);
    ops_put_u32(block, (uint32_t)group);
    for (uint32_t i = 0; i < OPS_DIRECT_TENSORS; i++) {
        const int64_t base = tensors[i] ? ops_base(&t->bindings, t->slots[i], tensors[i]) : 0;
        ops_put_u32(block, (uint32_t)(base + at[i]));
    }
}

/* Outputs of each group: `blocks` times `results`. */
typedef struct output_range {
    int64_t first;
    uint32_t results, blocks;
} output_range;

static void task_key(const phase_user *u, const ops_direct_phase *p, uint32_t blocks,
                     ops_direct_task *t)
{
    const direct_call *call = u->call;
    ops_direct_key *k = &t->key;
    key_window(call, p, k);
    key_operands(call, k);
    key_results(call, p, k);
    k->number[OPS_DIRECT_BLOCKS] = blocks;
    k->number[OPS_DIRECT_GROUPS] = (uint32_t)call->form->groups;
    k->activation = call->form->activation;
    k->has_bias = call->bias != NULL;
    t->activation = call->activation;
}

static void task_append_key(const ops_direct_task *t, ops_cache_key *key)
{
    const uint32_t tensors = t->key.has_bias ? OPS_DIRECT_TENSORS : OPS_DIRECT_BIAS;
    ops_cache_key_begin(key, OPS_FAMILY_DIRECT);
    ops_cache_key_append(key, &t->key, sizeof t->key);
    ops_bindings_key(&t->bindings, t->slots, tensors, key);
}

static void task_grid(const phase_user *u, const ops_direct_key *k, uint32_t grid[3])
{
    const uint32_t *n = k->number;
    grid[0] = (uint32_t)ops_ceil_divide(n[OPS_DIRECT_COLUMNS], k->lanes);
    grid[1] = (uint32_t)ops_ceil_divide(n[OPS_DIRECT_ROWS], k->rows);
    grid[2] = (uint32_t)(u->piece->images * u->piece->groups) * n[OPS_DIRECT_BLOCKS] *
              n[OPS_DIRECT_DEPTH];
}

/* Bytes that the general kernel is charged for: of elements of x that it loads. */
static uint64_t charged_bytes(const phase_user *u, const ops_direct_phase *p, uint32_t blocks)
{
    const ops_tuning *tuning = u->call->context->tuning;
    double loads =
        (double)(u->piece->images * u->piece->groups) * blocks * (double)u->call->lengths.inputs;
    for (uint32_t i = 0; i < u->call->form->rank; i++) {
        loads *= (double)p->places[i] * (double)p->taps[i];
    }
    return (uint64_t)(loads * tuning->convolution.direct_general_ns *
                      (double)tuning->compile.bytes_per_ns);
}

/* Records the kernel of the class for the outputs from `first` on. */
static hal_status record_general(const phase_user *u, const ops_direct_phase *p, int64_t first,
                                 ops_direct_task *t)
{
    const direct_call *call = u->call;
    const ops_tensor *x = call->image.buffer ? &call->image : &call->x;
    ops_direct_key *k = &t->key;
    const uint32_t outputs = (uint32_t)(call->lengths.outputs - first);
    ops_cache_key key;
    ops_entry *entry;
    ops_block block;
    uint32_t grid[3];
    memset(k, 0, sizeof *k); /* a part of the key */
    ops_direct_shape_general(p, call->form->rank, outputs, k);
    task_key(u, p, (uint32_t)ops_ceil_divide(outputs, k->results), t);
    task_grid(u, k, grid);
    scalars_put(u, p, first, x, t, &block);
    ops_direct_generalise(k, outputs, &block);
    task_append_key(t, &key);
    HAL_TRY(ops_cache_get(call->context, &key, "convolution", ops_direct_emit, t, &entry));
    return ops_dispatch(call->context, entry, grid, &t->bindings, &block);
}

/* Records some outputs by the kernel of the shape, or all from their first one on by that of its
 * class. */
static hal_status record_blocks(const phase_user *u, const ops_direct_phase *p,
                                const output_range *range, bool *is_general)
{
    const direct_call *call = u->call;
    const ops_tensor *x = call->image.buffer ? &call->image : &call->x;
    ops_direct_task t;
    ops_cache_key key;
    ops_entry *entry;
    ops_block block;
    uint32_t grid[3];
    memset(&t, 0, sizeof t); /* a part of the key */
    ops_direct_shape(p, call->form->rank, range->results, call->planes.step[0], &t.key);
    task_key(u, p, range->blocks, &t);
    task_bind(u, x, &t);
    task_append_key(&t, &key);
    HAL_TRY(ops_cache_get_special(call->context, &key, "convolution", ops_direct_emit, &t,
                                  charged_bytes(u, p, range->blocks), &entry));
    *is_general = !entry;
    if (!entry) {
        return record_general(u, p, range->first, &t);
    }
    task_grid(u, &t.key, grid);
    scalars_put(u, p, range->first, x, &t, &block);
    return ops_dispatch(call->context, entry, grid, &t.bindings, &block);
}

static hal_status record_phase(void *user, const ops_direct_phase *p)
{
    const phase_user *u = user;
    const int64_t outputs = u->call->lengths.outputs;
    const uint32_t results =
        ops_direct_results(p, u->call->form->rank, outputs, u->call->planes.step[0]);
    const uint32_t blocks = (uint32_t)(outputs / results), rest = (uint32_t)(outputs % results);
    bool is_general;
    HAL_TRY(record_blocks(u, p, &(output_range){0, results, blocks}, &is_general));
    return rest > 0 && !is_general
               ? record_blocks(u, p, &(output_range){outputs - rest, rest, 1}, &is_general)
               : HAL_OK;
}

/* ---- Pieces ---- */

/* Copies x to the planes: all images at once where their channels have one distance. */
static hal_status image_copy(const direct_call *call, const direct_piece *piece)
{
    const int64_t inputs = call->lengths.inputs;
    ops_tensor part = call->x;
    part.offset += piece->image * part.stride[0] + piece->group * inputs * part.stride[1];
    part.shape[0] = piece->images;
    part.shape[1] = piece->groups * inputs;
    const bool is_one = piece->images == 1 || part.stride[0] == part.shape[1] * part.stride[1];
    ops_tensor image = part, to = call->image;
    image.rank = part.rank - 1;
    for (uint32_t i = 1; i < image.rank; i++) {
        image.shape[i] = call->planes.length[i - 1];
        image.stride[i] = part.stride[i + 1];
    }
    image.stride[0] = part.stride[1];
    image.shape[0] = is_one ? part.shape[0] * part.shape[1] : part.shape[1];
    to.shape[0] = image.shape[0] * call->planes.elements;
    for (int64_t i = 0; i < (is_one ? 1 : piece->images); i++) {
        HAL_TRY(ops_planes_copy(call->context, &call->planes, &image, &to));
        image.offset += part.stride[0];
        to.offset += part.shape[1] * call->planes.elements;
    }
    return HAL_OK;
}

static hal_status record_piece(const direct_call *call, const direct_piece *piece)
{
    phase_user u = {call, piece};
    if (call->image.buffer) {
        HAL_TRY(image_copy(call, piece));
    }
    return ops_direct_each_phase(call->form, &call->lengths, &u, record_phase);
}

/* Images of a piece, or where these are too large, groups of one. */
static direct_piece piece_choose(const direct_call *call)
{
    const uint64_t size = hal_type_size(call->x.type);
    const uint64_t group = size * (uint64_t)(call->lengths.inputs * call->planes.elements);
    const uint64_t bytes = PIECE_BYTES * call->context->info->compute_units;
    const int64_t most =
        call->context->info->max_grid[2] / ops_direct_grid(call->form, &call->lengths);
    const int64_t fitting = (int64_t)(bytes / group), all = call->form->groups;
    const int64_t groups = fitting < most ? fitting : most;
    const int64_t images = groups / all;
    return images > 0
               ? (direct_piece){.images =
                                    images < call->lengths.images ? images : call->lengths.images,
                                .groups = all}
               : (direct_piece){.images = 1, .groups = groups > 0 ? groups : 1};
}

static hal_status record_pieces(const direct_call *call, const direct_piece *most)
{
    for (int64_t image = 0; image < call->lengths.images; image += most->images) {
        const int64_t images = call->lengths.images - image;
        for (int64_t group = 0; group < call->form->groups; group += most->groups) {
            const int64_t groups = call->form->groups - group;
            const direct_piece piece = {.image = image,
                                        .images = images < most->images ? images : most->images,
                                        .group = group,
                                        .groups = groups < most->groups ? groups : most->groups};
            HAL_TRY(record_piece(call, &piece));
        }
    }
    return HAL_OK;
}

/* Memory of a piece for its planes, among zeros. */
static hal_status image_make(direct_call *call, const direct_piece *most)
{
    if (reads_image(call)) {
        return HAL_OK;
    }
    const hal_type type = call->x.type;
    const int64_t count =
        most->images * most->groups * call->lengths.inputs * call->planes.elements;
    call->image = (ops_tensor){.type = type, .rank = 1, .shape = {count}, .stride = {1}};
    HAL_TRY(ops_buffer_create(call->context, (uint64_t)count * hal_type_size(type),
                              &call->image.buffer));
    /* Pieces leave the zeros as they are. */
    return call->has_zeros ? ops_fill(call->context, 0, &call->image) : HAL_OK;
}

/* Whether the lanes of a kernel are neighbours in a tensor. */
static bool has_lines(const ops_tensor *x)
{
    return x->stride[x->rank - 1] == 1 || x->shape[x->rank - 1] == 1;
}

/* Memory for some images of x or y, whose lines are contiguous. */
static hal_status lines_make(ops_context *context, int64_t images, const ops_tensor *x,
                             ops_tensor *lines)
{
    int64_t stride = 1;
    *lines = *x;
    lines->shape[0] = images;
    lines->offset = 0;
    lines->buffer = NULL;
    for (uint32_t i = x->rank; i-- > 0;) {
        lines->stride[i] = stride;
        stride *= lines->shape[i];
    }
    return ops_buffer_create(context, (uint64_t)stride * hal_type_size(x->type), &lines->buffer);
}

/* Images from `first` on. */
static ops_tensor images_of(const ops_tensor *x, int64_t first, int64_t images)
{
    ops_tensor part = *x;
    part.offset += first * x->stride[0];
    part.shape[0] = images;
    return part;
}

/* Computes blocks of images, whose channels may be last in x and y: they are copied then. */
static hal_status record_images(direct_call *call, const ops_tensor *x, const ops_tensor *y)
{
    const int64_t images = x->shape[0], most = call->lengths.images;
    const direct_piece piece = piece_choose(call);
    HAL_TRY(image_make(call, &piece));
    for (int64_t first = 0; first < images; first += most) {
        const int64_t count = images - first < most ? images - first : most;
        const ops_tensor from = images_of(x, first, count), to = images_of(y, first, count);
        call->lengths.images = call->x.shape[0] = call->y.shape[0] = count;
        call->y = has_lines(y) ? to : call->y;
        if (has_lines(x)) {
            call->x = from;
        } else {
            HAL_TRY(ops_copy(call->context, &from, &call->x));
        }
        HAL_TRY(record_pieces(call, &piece));
        if (!has_lines(y)) {
            HAL_TRY(ops_copy(call->context, &call->y, &to));
        }
    }
    return HAL_OK;
}

/* The images of a block: all, or as many as stay in a cache where they are copied. */
static int64_t block_images(const direct_call *call, const ops_tensor *x, const ops_tensor *y)
{
    const int64_t images = x->shape[0];
    if (has_lines(x) && has_lines(y)) {
        return images;
    }
    const uint64_t elements =
        (uint64_t)(ops_tensor_get_element_count(x) + ops_tensor_get_element_count(y));
    const uint64_t image = elements / (uint64_t)images * hal_type_size(x->type);
    const int64_t fitting = (int64_t)(BLOCK_BYTES * call->context->info->compute_units / image);
    return fitting < 1 ? 1 : fitting < images ? fitting : images;
}

static void lengths_of(const direct_call *call, ops_direct_lengths *n)
{
    const uint32_t rank = call->form->rank;
    n->inputs = call->w->shape[2];
    n->outputs = call->w->shape[1];
    memcpy(n->x, call->x.shape + 2, rank * sizeof *n->x);
    memcpy(n->y, call->y.shape + 2, rank * sizeof *n->y);
    memcpy(n->window, call->w->shape + 3, rank * sizeof *n->window);
}

/* Computes a call whose lanes are along the last axis. */
static hal_status record_call(direct_call *call, const ops_tensor *x, const ops_tensor *y)
{
    hal_status status = HAL_OK;
    call->x = *x;
    call->y = *y;
    lengths_of(call, &call->lengths);
    call->lengths.images = block_images(call, x, y);
    call->has_zeros = ops_direct_planes(call->form, &call->lengths, &call->planes);
    if (!has_lines(x)) {
        status = lines_make(call->context, call->lengths.images, x, &call->x);
    }
    if (status == HAL_OK && !has_lines(y)) {
        status = lines_make(call->context, call->lengths.images, y, &call->y);
    }
    if (status == HAL_OK) {
        status = record_images(call, x, y);
    }
    hal_buffer_release(call->image.buffer);
    if (call->x.buffer != x->buffer) {
        hal_buffer_release(call->x.buffer);
    }
    if (call->y.buffer != y->buffer) {
        hal_buffer_release(call->y.buffer);
    }
    return status;
}

/* Moves a spatial axis of a tensor to its last place. */
static ops_tensor axis_moved(const ops_tensor *x, uint32_t axis, uint32_t before)
{
    ops_tensor moved = *x;
    for (uint32_t i = axis + before; i + 1 < x->rank; i++) {
        moved.shape[i] = x->shape[i + 1];
        moved.stride[i] = x->stride[i + 1];
    }
    moved.shape[x->rank - 1] = x->shape[axis + before];
    moved.stride[x->rank - 1] = x->stride[axis + before];
    return moved;
}

/* The spatial axis whose elements are neighbours. */
static int32_t line_of(const ops_tensor *x)
{
    int32_t line = -1;
    for (uint32_t i = 2; i < x->rank; i++) {
        line = x->stride[i] == 1 ? (int32_t)i - 2 : line;
    }
    return line;
}

hal_status ops_direct(ops_context *context, const ops_direct_form *form, const ops_tensor *x,
                      const ops_tensor *w, const ops_tensor *bias, const ops_tensor *y)
{
    ops_direct_form moved = *form;
    direct_call call = {.context = context, .form = form, .w = w, .bias = bias, .x = *x, .y = *y};
    if (ops_tensor_get_element_count(y) == 0) {
        return HAL_OK;
    }
    if (form->activation != OPS_IDENTITY) {
        ops_expression *activation;
        HAL_TRY(ops_unary_expression(context, "ops_direct", (ops_unary_function)form->activation,
                                     y->type, &activation));
        call.activation = activation;
    }
    lengths_of(&call, &call.lengths);
    call.lengths.images = x->shape[0];
    uint32_t axis;
    (void)ops_direct_estimate(form, &call.lengths, &context->tuning->convolution, line_of(x),
                              line_of(y), &axis);
    const ops_tensor image = axis_moved(x, axis, 2), weights = axis_moved(w, axis, 3),
                     result = axis_moved(y, axis, 2);
    ops_direct_move_axis(axis, &moved, &call.lengths);
    call.form = &moved;
    call.w = &weights;
    return record_call(&call, &image, &result);
}

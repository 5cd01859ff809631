/* Kernels of segments, see segments.h. */
#include "segments.h"

#include "elementwise.h"
#include "fold.h"
#include "joined_copies.h"
#include "tensor/bindings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The table: a record for each segment (the number of its first tile, its elements, those that may
 * be accessed by vectors, the place of its first element in each view's binding, and which of its
 * bindings each input is in), then the segment of each tile. */
enum { RECORD_TILE, RECORD_ELEMENTS, RECORD_ALIGNED, RECORD_PLACES };

/* Elements of a work-item that uses vectors, and else of a group, without a loop: some compilers
 * make no vectors of loops. */
#define ITEM_ELEMENTS 8u
#define GROUP_ELEMENTS 256u

/* Bytes of a tile's inputs in shared memory at most. */
#define TILE_SHARED_BYTES 16384u

/* Bytes after which the copies of segments begin: vectors and bindings are aligned. */
#define COPY_ALIGNMENT 256u

/* Bindings of a view: the buffers of its segments, and the copies. */
typedef struct segments_view {
    hal_buffer *buffers[HAL_IR_MAX_BINDINGS];
    uint32_t buffer_count;
    bool has_copies;
    bool is_common; /* all segments have one buffer */
    bool is_staged; /* a tile is read into shared memory, where its binding is chosen once */
    uint8_t first, slots;
} segments_view;

/* A kernel and its dispatch. Binding 0 is the table. */
typedef struct segments_plan {
    const ops_context *context;
    const ops_segments *call;
    const ops_expression *expression; /* while the kernel is made */
    uint32_t view_count, count;       /* views; segments that the kernel computes */
    uint32_t width, group;            /* elements of a vector; work-items of a group */
    uint32_t repeat, tile;            /* vectors of a work-item; elements of a tile */
    uint32_t record_words, tile_count;
    uint64_t copied_bytes;
    segments_view views[OPS_SEGMENT_VIEWS];
    ops_bindings bindings;
} segments_plan;

void ops_segment_tables_clear(ops_segment_tables *tables)
{
    for (uint32_t i = 0; i < OPS_SEGMENT_TABLES; i++) {
        hal_buffer_release(tables->entries[i].buffer);
        tables->entries[i].buffer = NULL;
    }
}

uint64_t ops_segments_largest_buffer(const ops_context *context)
{
    const uint64_t most = UINT64_C(1) << 28;
    return context->info->max_binding < most ? context->info->max_binding : most;
}

/* ---- Planning ---- */

static bool view_is_scalar(const segments_plan *plan, uint32_t view)
{
    const ops_segments *call = plan->call;
    return view < call->input_count ? call->scalars >> view & 1 : call->folds;
}

static uint64_t segment_bytes(const segments_plan *plan, const ops_segment *segment, uint32_t view)
{
    const uint64_t size = hal_type_size(plan->call->types[view]);
    return size * (view_is_scalar(plan, view) ? 1 : (uint64_t)segment->elements);
}

/* Whether a segment's input is copied: a small buffer that has nothing else. */
static bool segment_is_copied(const segments_plan *plan, const ops_segment *segment, uint32_t view)
{
    const uint64_t bytes = segment_bytes(plan, segment, view);
    const uint64_t most = plan->context->tuning->elementwise.max_joined_copy;
    const ops_segment_view *x = &segment->views[view];
    return view < plan->call->input_count && !plan->views[view].is_common && bytes % 4 == 0 &&
           (most == 0 || bytes <= most) && x->offset == 0 &&
           hal_buffer_get_bytes(x->buffer) == bytes;
}

static uint32_t view_find_buffer(const segments_view *view, const hal_buffer *buffer)
{
    uint32_t i = 0;
    while (i < view->buffer_count && view->buffers[i] != buffer) {
        i++;
    }
    return i;
}

/* The binding that a view of one buffer shares with an earlier one, or HAL_IR_MAX_BINDINGS. */
static uint32_t plan_find_binding(const segments_plan *plan, uint32_t view)
{
    const segments_view *v = &plan->views[view];
    for (uint32_t i = 0; i < view; i++) {
        const segments_view *other = &plan->views[i];
        if (v->slots == 1 && other->slots == 1 && !v->has_copies && !other->has_copies &&
            v->buffers[0] == other->buffers[0] && plan->call->types[view] == plan->call->types[i]) {
            return other->first;
        }
    }
    return HAL_IR_MAX_BINDINGS;
}

/* Numbers the bindings of all views. Returns how many the kernel has. */
static uint32_t plan_number_bindings(segments_plan *plan)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < plan->view_count; i++) {
        segments_view *view = &plan->views[i];
        view->slots = (uint8_t)(view->buffer_count + view->has_copies);
        const uint32_t known = plan_find_binding(plan, i);
        view->first = (uint8_t)(known < HAL_IR_MAX_BINDINGS ? known : count);
        count += known < HAL_IR_MAX_BINDINGS ? 0 : view->slots;
    }
    return count;
}

/* Adds a segment where the bindings allow it. */
static bool plan_add_segment(segments_plan *plan, const ops_segment *segment)
{
    uint32_t counts[OPS_SEGMENT_VIEWS];
    bool copies[OPS_SEGMENT_VIEWS], fits = true, has_new = false;
    for (uint32_t i = 0; i < plan->view_count; i++) {
        segments_view *view = &plan->views[i];
        counts[i] = view->buffer_count;
        copies[i] = view->has_copies;
        if (view_find_buffer(view, segment->views[i].buffer) < view->buffer_count) {
            continue;
        }
        if (segment_is_copied(plan, segment, i)) {
            has_new = has_new || !view->has_copies;
            view->has_copies = true;
        } else if (view->buffer_count < (i < plan->call->input_count ? HAL_IR_MAX_BINDINGS : 1)) {
            view->buffers[view->buffer_count++] = segment->views[i].buffer;
            has_new = true;
        } else {
            fits = false;
        }
    }
    fits = fits && (!has_new || plan_number_bindings(plan) <= plan->context->info->max_bindings);
    for (uint32_t i = 0; !fits && i < plan->view_count; i++) {
        plan->views[i].buffer_count = counts[i];
        plan->views[i].has_copies = copies[i];
    }
    return fits;
}

static void plan_find_common(segments_plan *plan)
{
    const ops_segments *call = plan->call;
    for (uint32_t i = 0; i < plan->view_count; i++) {
        bool is_common = true;
        for (uint32_t k = 1; is_common && k < call->count; k++) {
            is_common = call->segments[k].views[i].buffer == call->segments[0].views[i].buffer;
        }
        plan->views[i] = (segments_view){.is_common = is_common};
    }
}

static void plan_choose_width(segments_plan *plan)
{
    const ops_context *context = plan->context;
    uint32_t size = 1;
    for (uint32_t i = 0; i < plan->view_count; i++) {
        const uint32_t bytes = hal_type_size(plan->call->types[i]);
        size = bytes > size ? bytes : size;
    }
    const uint32_t widest = ops_elementwise_widest(context, size);
    const uint32_t most = context->tuning->elementwise.max_width;
    plan->width = widest < most ? widest : most;
    plan->group = ops_group_items(context->info);
    if (plan->call->folds) { /* by halves */
        plan->group = UINT32_C(1) << (31 - __builtin_clz(plan->group));
    }
}

/* The groups of a segment. */
static uint64_t segment_tiles(const segments_plan *plan, const ops_segment *segment, uint32_t tile)
{
    return plan->call->folds ? 1 : ops_ceil_divide((uint64_t)segment->elements, tile);
}

/* The tile of a kernel whose segments are chosen. */
static void plan_choose_tile(segments_plan *plan)
{
    const uint32_t shared = plan->context->info->shared_bytes;
    const uint32_t step = plan->width * plan->group;
    uint32_t bytes = 0; /* of an element in shared memory */
    for (uint32_t i = 0; i < plan->call->input_count; i++) {
        segments_view *view = &plan->views[i];
        view->is_staged = view->slots > 1 && !view_is_scalar(plan, i);
        bytes += view->is_staged ? hal_type_size(hal_type_of_value(plan->call->types[i])) : 0;
    }
    const uint32_t limit = plan->call->folds ? shared / 2 : shared; /* the fold takes some */
    const uint32_t most = limit < TILE_SHARED_BYTES ? limit : TILE_SHARED_BYTES;
    const uint32_t vectors = ITEM_ELEMENTS / plan->width;
    const uint32_t lanes = plan->group < GROUP_ELEMENTS ? GROUP_ELEMENTS / plan->group : 1;
    const uint32_t usual = plan->width > 1 ? vectors : lanes;
    const uint32_t fitting = bytes ? most / bytes / step : usual;
    plan->repeat = fitting == 0 ? 1 : fitting < usual ? fitting : usual;
    plan->tile = step * plan->repeat;
    plan->tile_count = 0;
    for (uint32_t k = 0; k < plan->count; k++) {
        plan->tile_count += (uint32_t)segment_tiles(plan, &plan->call->segments[k], plan->tile);
    }
}

/* Chooses the segments of the kernel. The grid has room for the smallest tiles. */
static void plan_choose_segments(segments_plan *plan)
{
    const ops_segments *call = plan->call;
    uint64_t tiles = 0;
    for (; plan->count < call->count; plan->count++) {
        const ops_segment *segment = &call->segments[plan->count];
        tiles += segment_tiles(plan, segment, plan->width * plan->group);
        if (tiles > plan->context->info->max_grid[0] || !plan_add_segment(plan, segment)) {
            break;
        }
    }
    plan_number_bindings(plan);
    plan_choose_tile(plan);
}

/* ---- Bindings and the table ---- */

/* Extends a binding to a range of bytes. */
static void binding_extend(const segments_plan *plan, hal_range *range, uint32_t type,
                           hal_buffer *buffer, uint64_t begin, uint64_t end)
{
    const uint64_t least = plan->context->info->binding_alignment;
    const uint64_t alignment = least > hal_type_size(type) ? least : hal_type_size(type);
    begin &= ~(alignment - 1);
    if (range->buffer) {
        const uint64_t old_end = range->offset + range->length;
        begin = begin < range->offset ? begin : range->offset;
        end = end > old_end ? end : old_end;
    }
    *range = (hal_range){buffer, begin, end - begin};
}

/* Describes the bindings, and counts the bytes of the copies. */
static void plan_bind(segments_plan *plan)
{
    const ops_segments *call = plan->call;
    memset(&plan->bindings, 0, sizeof plan->bindings);
    plan->bindings.count = 1;
    plan->bindings.types[0] = HAL_TYPE_U32;
    plan->bindings.access[0] = HAL_ACCESS_READ;
    for (uint32_t i = 0; i < plan->view_count; i++) {
        const segments_view *view = &plan->views[i];
        const hal_type type = call->types[i];
        for (uint32_t slot = view->first; slot < view->first + (uint32_t)view->slots; slot++) {
            plan->bindings.types[slot] = type;
            plan->bindings.access[slot] |=
                i < call->input_count ? HAL_ACCESS_READ : HAL_ACCESS_WRITE;
            plan->bindings.count = slot >= plan->bindings.count ? slot + 1 : plan->bindings.count;
        }
        for (uint32_t k = 0; k < plan->count; k++) {
            const ops_segment *segment = &call->segments[k];
            const ops_segment_view *x = &segment->views[i];
            const uint32_t buffer = view_find_buffer(view, x->buffer);
            const uint64_t bytes = segment_bytes(plan, segment, i);
            const uint64_t begin = (uint64_t)x->offset * hal_type_size(type);
            if (buffer == view->buffer_count) {
                plan->copied_bytes +=
                    (bytes + COPY_ALIGNMENT - 1) & ~(uint64_t)(COPY_ALIGNMENT - 1);
                continue;
            }
            binding_extend(plan, &plan->bindings.ranges[view->first + buffer], type, x->buffer,
                           begin, begin + bytes);
        }
    }
}

/* Adds the copies, from *at on, of a view, whose last binding is their buffer. */
static hal_status plan_copy_view(const segments_plan *plan, uint32_t number,
                                 ops_joined_copies *copies, uint64_t *at, uint32_t *places)
{
    const segments_view *view = &plan->views[number];
    const uint64_t size = hal_type_size(plan->call->types[number]);
    for (uint32_t k = 0; k < plan->count; k++) {
        const ops_segment *segment = &plan->call->segments[k];
        const ops_segment_view *x = &segment->views[number];
        if (view_find_buffer(view, x->buffer) < view->buffer_count) {
            continue;
        }
        const uint64_t bytes = segment_bytes(plan, segment, number);
        places[(size_t)k * plan->record_words] = (uint32_t)(*at / size);
        const ops_joined_copy copy = {.from = x->buffer, .to_offset = *at, .bytes = bytes};
        HAL_TRY(ops_joined_copies_add(copies, &copy));
        *at += (bytes + COPY_ALIGNMENT - 1) & ~(uint64_t)(COPY_ALIGNMENT - 1);
    }
    return HAL_OK;
}

/* Copies what is copied and writes where it is to the table. */
static hal_status plan_copy(ops_context *context, segments_plan *plan, hal_buffer *copies,
                            uint32_t *table)
{
    ops_joined_copies joined = {.context = context, .to = copies};
    uint64_t at = 0;
    for (uint32_t i = 0; i < plan->call->input_count; i++) {
        const segments_view *view = &plan->views[i];
        if (view->has_copies) {
            plan->bindings.ranges[view->first + view->slots - 1u] =
                (hal_range){copies, 0, plan->copied_bytes};
            HAL_TRY(plan_copy_view(plan, i, &joined, &at, table + RECORD_PLACES + i));
        }
    }
    return ops_joined_copies_end(&joined);
}

static void plan_fill_record(const segments_plan *plan, const ops_segment *segment, uint32_t tile,
                             uint32_t *record)
{
    const ops_segments *call = plan->call;
    bool is_aligned = true;
    for (uint32_t i = 0; i < plan->view_count; i++) {
        const segments_view *view = &plan->views[i];
        const uint32_t buffer = view_find_buffer(view, segment->views[i].buffer);
        uint32_t place = 0; /* of copies: filled in with them, and aligned */
        if (buffer < view->buffer_count) {
            const hal_range *range = &plan->bindings.ranges[view->first + buffer];
            place = (uint32_t)((uint64_t)segment->views[i].offset -
                               range->offset / hal_type_size(call->types[i]));
        }
        is_aligned = is_aligned && (view_is_scalar(plan, i) || place % plan->width == 0);
        record[RECORD_PLACES + i] = place;
        if (i < call->input_count) {
            record[RECORD_PLACES + plan->view_count + i] = buffer;
        }
    }
    record[RECORD_TILE] = tile;
    record[RECORD_ELEMENTS] = (uint32_t)segment->elements;
    record[RECORD_ALIGNED] = is_aligned ? (uint32_t)segment->elements : 0;
}

static void plan_fill_table(const segments_plan *plan, uint32_t *table)
{
    uint32_t *tiles = table + (size_t)plan->count * plan->record_words;
    uint32_t tile = 0;
    for (uint32_t k = 0; k < plan->count; k++) {
        const ops_segment *segment = &plan->call->segments[k];
        plan_fill_record(plan, segment, tile, table + (size_t)k * plan->record_words);
        const uint32_t end = tile + (uint32_t)segment_tiles(plan, segment, plan->tile);
        for (; tile < end; tile++) {
            tiles[tile] = k;
        }
    }
}

/* Finds or writes the table's buffer, which the tables keep. */
static hal_status table_get(const segments_plan *plan, const uint32_t *table, uint64_t words,
                            ops_segment_tables *tables, hal_buffer **buffer)
{
    uint64_t hash[2];
    ops_cache_key key = {.size = 0};
    for (uint64_t i = 0; i < words; i += OPS_CACHE_KEY_BYTES / 8) {
        const uint64_t left = words - i, most = OPS_CACHE_KEY_BYTES / 8;
        ops_cache_key_append(&key, table + i, (left < most ? left : most) * sizeof *table);
    }
    ops_cache_key_append(&key, &words, sizeof words);
    ops_cache_key_hash(&key, hash);
    const uint32_t at = (uint32_t)hash[0] % OPS_SEGMENT_TABLES;
    if (tables->entries[at].buffer && memcmp(tables->entries[at].hash, hash, sizeof hash) == 0) {
        *buffer = tables->entries[at].buffer;
        return HAL_OK;
    }
    hal_buffer *made;
    HAL_TRY(
        hal_buffer_create(plan->context->device, HAL_MEMORY_DEVICE, words * sizeof *table, &made));
    const hal_status status =
        hal_queue_write(plan->context->queue, made, 0, table, words * sizeof *table);
    if (status != HAL_OK) {
        hal_buffer_release(made);
        return status;
    }
    hal_buffer_release(tables->entries[at].buffer);
    tables->entries[at].buffer = *buffer = made;
    memcpy(tables->entries[at].hash, hash, sizeof hash);
    return HAL_OK;
}

/* ---- The kernel ---- */

/* What a group knows of its segment. */
typedef struct segment_values {
    const segments_plan *plan;
    hal_ir_value place[OPS_SEGMENT_VIEWS]; /* of the tile's first element */
    hal_ir_value which[OPS_MAX_INPUTS];
    hal_ir_value scalar[OPS_MAX_INPUTS]; /* of inputs with one element */
    hal_ir_memory_id staged[OPS_MAX_INPUTS];
    hal_ir_value lane, count; /* elements of the tile */
    hal_ir_value folded;      /* of those so far, a variable */
} segment_values;

/* What is done with `width` elements from number `item` of the tile on. */
typedef void (*item_body)(hal_ir_builder *b, const segment_values *values, hal_ir_value item,
                          uint32_t width, hal_ir_value guard, const void *user);

/* The elements that a work-item has in a whole tile, one by one: the order of a fold. */
static void emit_single_items(hal_ir_builder *b, const segment_values *values, item_body body,
                              const void *user)
{
    const segments_plan *plan = values->plan;
    const hal_ir_value width = hal_ir_u32(b, plan->width);
    for (uint32_t i = 0; i < plan->repeat * plan->width; i++) {
        const uint32_t offset = i / plan->width * plan->width * plan->group + i % plan->width;
        const hal_ir_value first = hal_ir_mul(b, values->lane, width);
        const hal_ir_value item = hal_ir_add(b, first, hal_ir_u32(b, offset));
        body(b, values, item, 1, hal_ir_lt(b, item, values->count), user);
    }
}

/* Emits the body for the elements of a work-item: vectors of a whole tile, or single elements. */
static void emit_items(hal_ir_builder *b, const segment_values *values, bool is_whole,
                       item_body body, const void *user)
{
    const segments_plan *plan = values->plan;
    const uint32_t step = plan->width * plan->group;
    if (!is_whole && plan->call->folds) {
        emit_single_items(b, values, body, user);
        return;
    }
    if (!is_whole) {
        const hal_ir_value first =
            hal_ir_for(b, hal_ir_u32(b, 0), values->count, hal_ir_u32(b, plan->group));
        const hal_ir_value item = hal_ir_add(b, first, values->lane);
        body(b, values, item, 1, hal_ir_lt(b, item, values->count), user);
        hal_ir_end(b);
        return;
    }
    for (uint32_t i = 0; i < plan->repeat; i++) {
        hal_ir_value item = values->lane;
        item = plan->width > 1 ? hal_ir_mul(b, item, hal_ir_u32(b, plan->width)) : item;
        item = i ? hal_ir_add(b, item, hal_ir_u32(b, i * step)) : item;
        body(b, values, item, plan->width, HAL_IR_NONE, user);
    }
}

/* What is done with one of an input's bindings. */
typedef void (*binding_body)(hal_ir_builder *b, const segment_values *values, uint32_t input,
                             uint32_t binding, const void *user);

/* Emits the body for that of an input's bindings which the segment is in, by halving. */
static void emit_choice(hal_ir_builder *b, const segment_values *values, uint32_t input,
                        uint32_t begin, uint32_t end, binding_body body, const void *user)
{
    if (end - begin == 1) {
        body(b, values, input, values->plan->views[input].first + begin, user);
        return;
    }
    const uint32_t middle = begin + (end - begin) / 2;
    hal_ir_if(b, hal_ir_lt(b, values->which[input], hal_ir_u32(b, middle)));
    emit_choice(b, values, input, begin, middle, body, user);
    hal_ir_else(b);
    emit_choice(b, values, input, middle, end, body, user);
    hal_ir_end(b);
}

static void emit_scalar(hal_ir_builder *b, const segment_values *values, uint32_t input,
                        uint32_t binding, const void *user)
{
    const hal_ir_value *variable = user;
    hal_ir_set(b, *variable, hal_ir_load(b, binding, values->place[input]));
}

/* An input's binding that is read into shared memory. */
typedef struct stage {
    uint32_t input, binding;
} stage;

static void emit_staged_item(hal_ir_builder *b, const segment_values *values, hal_ir_value item,
                             uint32_t width, hal_ir_value guard, const void *user)
{
    const stage *s = user;
    const hal_ir_value index = hal_ir_add(b, values->place[s->input], item);
    const hal_ir_value loaded = hal_ir_load_wide(b, s->binding, index, 0, width, guard);
    hal_ir_store_wide(b, values->staged[s->input], item, 0, guard, loaded);
}

/* Reads a tile into shared memory. A work-item later reads what it has written: no barrier. */
static void emit_stage(hal_ir_builder *b, const segment_values *values, uint32_t input,
                       uint32_t binding, const void *user)
{
    const bool *is_whole = user;
    const stage s = {input, binding};
    emit_items(b, values, *is_whole, emit_staged_item, &s);
}

static void emit_load(hal_ir_builder *b, const segment_values *values, uint32_t input,
                      hal_ir_value item, uint32_t width, hal_ir_value guard, hal_ir_value *elements)
{
    const segments_view *view = &values->plan->views[input];
    if (values->plan->call->scalars >> input & 1) {
        for (uint32_t i = 0; i < width; i++) {
            elements[i] = values->scalar[input];
        }
        return;
    }
    const hal_ir_value loaded =
        view->is_staged
            ? hal_ir_load_wide(b, values->staged[input], item, 0, width, guard)
            : hal_ir_load_wide(b, view->first, hal_ir_add(b, values->place[input], item), 0, width,
                               guard);
    for (uint32_t i = 0; i < width; i++) {
        elements[i] = width > 1 ? hal_ir_extract(b, loaded, i) : loaded;
    }
}

/* Folds a value, or the neutral one where the guard is false, into the work-item's variable. */
static void emit_fold(hal_ir_builder *b, const segment_values *values, hal_ir_value guard,
                      hal_ir_value value)
{
    const uint32_t kind = values->plan->call->fold;
    ops_state next = {value, HAL_IR_NONE};
    if (guard != HAL_IR_NONE) {
        const ops_state neutral = ops_fold_identity(b, kind, hal_ir_type_of(b, value));
        next.value = hal_ir_select(b, guard, value, neutral.value);
    }
    const ops_state folded = {hal_ir_get(b, values->folded), HAL_IR_NONE};
    hal_ir_set(b, values->folded, ops_fold(b, kind, folded, next).value);
}

static void emit_elements(hal_ir_builder *b, const segment_values *values, hal_ir_value item,
                          uint32_t width, hal_ir_value guard, const void *user)
{
    const segments_plan *plan = user;
    const ops_segments *call = plan->call;
    hal_ir_value loaded[OPS_MAX_INPUTS][OPS_MAX_WIDTH], stored[OPS_MAX_OUTPUTS][OPS_MAX_WIDTH];
    for (uint32_t i = 0; i < call->input_count; i++) {
        emit_load(b, values, i, item, width, guard, loaded[i]);
    }
    for (uint32_t k = 0; k < width; k++) {
        hal_ir_value inputs[OPS_MAX_INPUTS], outputs[OPS_MAX_OUTPUTS];
        for (uint32_t i = 0; i < call->input_count; i++) {
            inputs[i] = loaded[i][k];
        }
        hal_ir_splice(b, plan->expression->fragment, inputs, call->input_count, outputs,
                      call->output_count);
        for (uint32_t i = 0; i < call->output_count; i++) {
            stored[i][k] = outputs[i];
        }
        if (call->folds) {
            emit_fold(b, values, guard, outputs[0]);
        }
    }
    for (uint32_t i = 0; i < call->output_count && !call->folds; i++) {
        const uint32_t view = call->input_count + i;
        const hal_ir_value value = width > 1 ? hal_ir_pack(b, width, stored[i]) : stored[i][0];
        hal_ir_store_wide(b, plan->views[view].first, hal_ir_add(b, values->place[view], item), 0,
                          guard, value);
    }
}

static void emit_tile(hal_ir_builder *b, const segment_values *values, bool is_whole)
{
    const segments_plan *plan = values->plan;
    for (uint32_t i = 0; i < plan->call->input_count; i++) {
        if (plan->views[i].is_staged) {
            emit_choice(b, values, i, 0, plan->views[i].slots, emit_stage, &is_whole);
        }
    }
    emit_items(b, values, is_whole, emit_elements, plan);
}

/* Finds the places of an input in its bindings, and loads it if it has one element. */
static void emit_input(hal_ir_builder *b, segment_values *values, uint32_t input,
                       hal_ir_value record)
{
    const segments_plan *plan = values->plan;
    const segments_view *view = &plan->views[input];
    const hal_type type = hal_type_of_value(plan->call->types[input]);
    if (view->slots > 1) {
        const int32_t at = (int32_t)(RECORD_PLACES + plan->view_count + input);
        values->which[input] = hal_ir_load_wide(b, 0, record, at, 1, HAL_IR_NONE);
    }
    if (view_is_scalar(plan, input) && view->slots == 1) {
        values->scalar[input] = hal_ir_load(b, view->first, values->place[input]);
    } else if (view_is_scalar(plan, input)) {
        const hal_ir_value variable =
            hal_ir_var(b, type == HAL_TYPE_BOOL ? hal_ir_bool(b, 0) : hal_ir_number(b, type, 0));
        emit_choice(b, values, input, 0, view->slots, emit_scalar, &variable);
        values->scalar[input] = hal_ir_get(b, variable);
    }
}

static void emit_declarations(hal_ir_builder *b, segment_values *values)
{
    const segments_plan *plan = values->plan;
    hal_ir_group_size(b, plan->group, 1, 1);
    ops_declare_bindings(b, &plan->bindings);
    for (uint32_t i = 0; i < plan->call->input_count; i++) {
        if (plan->views[i].is_staged) {
            char name[24];
            snprintf(name, sizeof name, "staged_%u", i);
            values->staged[i] =
                hal_ir_shared(b, name, hal_type_of_value(plan->call->types[i]), plan->tile);
        }
    }
}

static void emit_either_tile(hal_ir_builder *b, const segment_values *values, hal_ir_value is_whole)
{
    hal_ir_if(b, is_whole);
    emit_tile(b, values, true);
    hal_ir_else(b);
    emit_tile(b, values, false);
    hal_ir_end(b);
}

/* Folds all tiles of a segment and stores the result. */
static void emit_folded(hal_ir_builder *b, segment_values *values, hal_ir_value elements,
                        hal_ir_value aligned)
{
    const segments_plan *plan = values->plan;
    const ops_segments *call = plan->call;
    const ops_reduce_layout group = {.outputs = 1, .along = plan->group};
    const hal_type type = hal_type_of_value(call->types[call->input_count]);
    const ops_fold_memory shared = ops_fold_shared(b, &group, call->fold, type);
    const hal_ir_value most = hal_ir_u32(b, plan->tile), zero = hal_ir_u32(b, 0);
    values->folded = hal_ir_var(b, ops_fold_identity(b, call->fold, type).value);
    const hal_ir_value start = hal_ir_for(b, zero, elements, most);
    segment_values tile = *values;
    for (uint32_t i = 0; i < call->input_count; i++) {
        if (!view_is_scalar(plan, i)) {
            tile.place[i] = hal_ir_add(b, values->place[i], start);
        }
    }
    tile.count = hal_ir_min(b, hal_ir_sub(b, elements, start), most);
    emit_either_tile(b, &tile, hal_ir_le(b, hal_ir_add(b, start, most), aligned));
    hal_ir_end(b);
    const ops_reduce_lane lane = {
        .p = zero, .q = values->lane, .item = values->lane, .inside = HAL_IR_NONE};
    const ops_state own = {hal_ir_get(b, values->folded), HAL_IR_NONE};
    const ops_state all = ops_fold_group(b, &group, &lane, call->fold, own, shared);
    hal_ir_store_wide(b, plan->views[call->input_count].first, values->place[call->input_count], 0,
                      hal_ir_eq(b, values->lane, zero), all.value);
}

static void emit_segments(hal_ir_builder *b, const void *user)
{
    const segments_plan *plan = user;
    segment_values values = {.plan = plan};
    emit_declarations(b, &values);
    const hal_ir_value tiles = hal_ir_scalar_value(b, "tiles", HAL_TYPE_U32);
    const hal_ir_value number = hal_ir_id(b, HAL_IR_GROUP_ID, 0);
    const hal_ir_value segment = hal_ir_load(b, 0, hal_ir_add(b, tiles, number));
    const hal_ir_value record = hal_ir_mul(b, segment, hal_ir_u32(b, plan->record_words));
    const hal_ir_value tile = hal_ir_load_wide(b, 0, record, RECORD_TILE, 1, HAL_IR_NONE);
    const hal_ir_value elements = hal_ir_load_wide(b, 0, record, RECORD_ELEMENTS, 1, HAL_IR_NONE);
    const hal_ir_value aligned = hal_ir_load_wide(b, 0, record, RECORD_ALIGNED, 1, HAL_IR_NONE);
    const hal_ir_value most = hal_ir_u32(b, plan->tile);
    const hal_ir_value start = hal_ir_mul(b, hal_ir_sub(b, number, tile), most);
    for (uint32_t i = 0; i < plan->view_count; i++) {
        const hal_ir_value place =
            hal_ir_load_wide(b, 0, record, (int32_t)(RECORD_PLACES + i), 1, HAL_IR_NONE);
        values.place[i] =
            plan->call->folds || view_is_scalar(plan, i) ? place : hal_ir_add(b, place, start);
        if (i < plan->call->input_count) {
            emit_input(b, &values, i, record);
        }
    }
    values.lane = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    if (plan->call->folds) {
        emit_folded(b, &values, elements, aligned);
        return;
    }
    values.count = hal_ir_min(b, hal_ir_sub(b, elements, start), most);
    emit_either_tile(b, &values, hal_ir_le(b, hal_ir_add(b, start, most), aligned));
}

static void plan_append_key(const segments_plan *plan, ops_cache_key *key)
{
    const ops_segments *call = plan->call;
    const uint8_t no_slots[1] = {0};
    const uint32_t fold = call->folds ? 1 + call->fold : 0;
    const uint32_t counts[7] = {call->input_count, call->output_count, call->scalars, plan->width,
                                plan->group,       plan->tile,         fold};
    ops_cache_key_begin(key, OPS_FAMILY_SEGMENTS);
    ops_cache_key_append(key, call->form, 2 * sizeof *call->form);
    ops_cache_key_append(key, counts, sizeof counts);
    for (uint32_t i = 0; i < plan->view_count; i++) {
        const uint32_t view[2] = {plan->views[i].first, plan->views[i].slots};
        ops_cache_key_append(key, view, sizeof view);
    }
    ops_bindings_key(&plan->bindings, no_slots, 0, key);
}

static hal_status plan_find_kernel(ops_context *context, segments_plan *plan, ops_entry **entry)
{
    ops_cache_key key;
    uint64_t hash[2];
    plan_append_key(plan, &key);
    *entry = ops_cache_find(context, &key, hash);
    if (*entry) {
        return HAL_OK;
    }
    ops_expression *expression;
    HAL_TRY(plan->call->make(plan->call->user, &expression));
    plan->expression = expression;
    const hal_status status =
        ops_cache_get(context, &key, plan->call->name, emit_segments, plan, entry);
    ops_expression_destroy(expression);
    return status;
}

static hal_status plan_record(ops_context *context, segments_plan *plan, uint32_t *table,
                              hal_buffer *copies, ops_segment_tables *tables)
{
    ops_entry *entry;
    HAL_TRY(plan_find_kernel(context, plan, &entry));
    plan_fill_table(plan, table);
    HAL_TRY(plan_copy(context, plan, copies, table));
    const uint64_t words = (uint64_t)plan->count * plan->record_words + plan->tile_count;
    hal_range *first = &plan->bindings.ranges[0];
    HAL_TRY(table_get(plan, table, words, tables, &first->buffer));
    first->length = words * sizeof *table;
    const uint32_t grid[3] = {plan->tile_count, 1, 1};
    const uint32_t tiles = plan->count * plan->record_words;
    return hal_queue_dispatch(context->queue, entry->kernel, grid, plan->bindings.ranges,
                              plan->bindings.count, &tiles, sizeof tiles);
}

static hal_status plan_compute(ops_context *context, segments_plan *plan,
                               ops_segment_tables *tables)
{
    const uint64_t words = (uint64_t)plan->count * plan->record_words + plan->tile_count;
    uint32_t *table = malloc(words * sizeof *table);
    hal_buffer *copies = NULL;
    if (!table) {
        return hal_status_set(HAL_ERROR_OUT_OF_MEMORY,
                              "ops_array_evaluate: the host has no %llu bytes for a table of "
                              "segments",
                              (unsigned long long)(words * sizeof *table));
    }
    hal_status status = plan->copied_bytes ? hal_buffer_create(context->device, HAL_MEMORY_DEVICE,
                                                               plan->copied_bytes, &copies)
                                           : HAL_OK;
    if (status == HAL_OK) {
        status = plan_record(context, plan, table, copies, tables);
    }
    hal_buffer_release(copies);
    free(table);
    return status;
}

hal_status ops_segments_record(ops_context *context, const ops_segments *call,
                               ops_segment_tables *tables, uint32_t *taken)
{
    ops_scratch *scratch = &context->scratch;
    segments_plan *plan = ops_scratch_take(scratch, "ops_array_evaluate", sizeof *plan);
    *taken = 0;
    if (!plan) {
        return HAL_ERROR_OUT_OF_MEMORY;
    }
    plan->context = context;
    plan->call = call;
    plan->expression = NULL;
    plan->view_count = call->input_count + call->output_count;
    plan->record_words = RECORD_PLACES + plan->view_count + call->input_count;
    plan->count = plan->tile_count = 0;
    plan->copied_bytes = 0;
    plan_choose_width(plan);
    plan_find_common(plan);
    plan_choose_segments(plan);
    hal_status status = HAL_OK;
    if (plan->count >= (call->folds ? 1 : 2)) {
        plan_bind(plan);
        status = plan_compute(context, plan, tables);
        *taken = status == HAL_OK ? plan->count : 0;
    }
    ops_scratch_return(scratch, plan);
    return status;
}

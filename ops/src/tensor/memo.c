/* Memos of calls, see memo.h. */
#include "memo.h"

#include <xxhash.h>

#include <stdlib.h>
#include <string.h>

#define NO_BUFFER UINT32_MAX

/* A range of operand or temporary `slot`; temporaries follow the operands. */
typedef struct place {
    uint32_t slot;
    uint64_t offset, length;
} place;

enum { STEP_DISPATCH, STEP_COPY, STEP_FILL };

typedef struct step {
    hal_kernel *kernel; /* one reference */
    uint32_t kind, grid[3], place_first, place_count, scalar_first, scalar_bytes;
} step;

struct ops_memo {
    uint64_t key[2];
    uint32_t step_count, place_count, scalar_bytes, temporary_count, operand_count;
    step *steps; /* the arrays lie behind the structure */
    place *places;
    uint64_t *temporaries; /* bytes */
    uint8_t *scalars;
};

/* A memo that is being written. */
typedef struct draft {
    int is_open, is_lost;
    hal_buffer *buffers[OPS_MEMO_OPERANDS];
    uint64_t bytes[OPS_MEMO_OPERANDS];
    uint32_t operand_count, buffer_count;
    step *steps;
    place *places;
    uint8_t *scalars;
    uint32_t step_count, step_capacity, place_count, place_capacity, scalar_bytes, scalar_capacity;
} draft;

struct ops_memos {
    ops_memo **table; /* open addressing */
    uint32_t count, capacity;
    draft draft;
};

static void destroy(ops_memo *memo)
{
    for (uint32_t i = 0; i < memo->step_count; i++) {
        hal_kernel_release(memo->steps[i].kernel);
    }
    free(memo);
}

static void clear(ops_memos *memos)
{
    for (uint32_t i = 0; i < memos->capacity; i++) {
        if (memos->table[i]) {
            destroy(memos->table[i]);
            memos->table[i] = NULL;
        }
    }
    memos->count = 0;
}

static void release_kernels(draft *d)
{
    for (uint32_t i = 0; i < d->step_count; i++) {
        hal_kernel_release(d->steps[i].kernel);
    }
    d->step_count = 0;
}

static ops_memo **find_slot(ops_memo **table, uint32_t capacity, const uint64_t key[2])
{
    uint32_t i = (uint32_t)key[0] & (capacity - 1);
    while (table[i] && (table[i]->key[0] != key[0] || table[i]->key[1] != key[1])) {
        i = (i + 1) & (capacity - 1);
    }
    return &table[i];
}

static hal_status run_step(ops_context *context, const ops_memo *memo, const step *s,
                           hal_buffer *const *buffers)
{
    hal_range ranges[HAL_IR_MAX_BINDINGS];
    const place *places = memo->places + s->place_first;
    for (uint32_t i = 0; i < s->place_count; i++) {
        uint32_t slot = places[i].slot;
        ranges[i] = (hal_range){slot == NO_BUFFER ? NULL : buffers[slot], places[i].offset,
                                places[i].length};
    }
    switch (s->kind) {
    case STEP_COPY:
        return hal_queue_copy(context->queue, ranges[0], ranges[1]);
    case STEP_FILL:
        return hal_queue_fill(context->queue, ranges[0], s->grid[0]);
    default:
        return hal_queue_dispatch(context->queue, s->kernel, s->grid, ranges, s->place_count,
                                  memo->scalars + s->scalar_first, s->scalar_bytes);
    }
}

static int make_room(ops_memos *memos)
{
    if (memos->count == OPS_MEMO_COUNT) {
        clear(memos);
    }
    if (2 * (memos->count + 1) <= memos->capacity) {
        return 1;
    }
    uint32_t capacity = memos->capacity ? 2 * memos->capacity : 256;
    ops_memo **table = calloc(capacity, sizeof *table);
    if (!table) {
        return 0;
    }
    for (uint32_t i = 0; i < memos->capacity; i++) {
        if (memos->table[i]) {
            *find_slot(table, capacity, memos->table[i]->key) = memos->table[i];
        }
    }
    free(memos->table);
    memos->table = table;
    memos->capacity = capacity;
    return 1;
}

static ops_memo *finish(const draft *d, const uint64_t key[2])
{
    uint32_t temporaries = d->buffer_count - d->operand_count;
    size_t bytes = sizeof(ops_memo) + d->step_count * sizeof(step) +
                   d->place_count * sizeof(place) + temporaries * sizeof(uint64_t) +
                   d->scalar_bytes;
    ops_memo *memo = malloc(bytes);
    if (!memo) {
        return NULL;
    }
    *memo = (ops_memo){{key[0], key[1]},
                       d->step_count,
                       d->place_count,
                       d->scalar_bytes,
                       temporaries,
                       d->operand_count,
                       NULL,
                       NULL,
                       NULL,
                       NULL};
    memo->steps = (step *)(memo + 1);
    memo->places = (place *)(memo->steps + d->step_count);
    memo->temporaries = (uint64_t *)(memo->places + d->place_count);
    memo->scalars = (uint8_t *)(memo->temporaries + temporaries);
    if (d->step_count) {
        memcpy(memo->steps, d->steps, d->step_count * sizeof(step));
    }
    if (d->place_count) {
        memcpy(memo->places, d->places, d->place_count * sizeof(place));
    }
    memcpy(memo->temporaries, d->bytes + d->operand_count, temporaries * sizeof(uint64_t));
    if (d->scalar_bytes) {
        memcpy(memo->scalars, d->scalars, d->scalar_bytes);
    }
    return memo;
}

/* `array` is the address of a pointer. */
static int grow(void *array, uint32_t *capacity, uint32_t needed, size_t size)
{
    void *old, *made;
    if (needed <= *capacity) {
        return 1;
    }
    uint32_t wanted = needed > 2 * *capacity ? needed : 2 * *capacity;
    memcpy(&old, array, sizeof old);
    made = realloc(old, wanted * size);
    if (!made) {
        return 0;
    }
    memcpy(array, &made, sizeof made);
    *capacity = wanted;
    return 1;
}

static uint32_t slot_of(const draft *d, const hal_buffer *buffer)
{
    for (uint32_t i = 0; buffer && i < d->buffer_count; i++) {
        if (d->buffers[i] == buffer) {
            return i;
        }
    }
    return NO_BUFFER;
}

/* A new step with its places and scalars; null, and the memo is lost, without memory. */
static step *note(ops_context *context, const hal_range *ranges, uint32_t range_count,
                  const void *scalars, uint32_t scalar_bytes)
{
    draft *d = &context->memos->draft;
    uint32_t block = (scalar_bytes + 7) & ~7u;
    if (d->is_lost || !grow(&d->steps, &d->step_capacity, d->step_count + 1, sizeof *d->steps) ||
        !grow(&d->places, &d->place_capacity, d->place_count + range_count, sizeof *d->places) ||
        !grow(&d->scalars, &d->scalar_capacity, d->scalar_bytes + block, 1)) {
        d->is_lost = 1;
        return NULL;
    }
    step *s = &d->steps[d->step_count];
    *s = (step){.place_first = d->place_count,
                .place_count = range_count,
                .scalar_first = d->scalar_bytes,
                .scalar_bytes = scalar_bytes};
    for (uint32_t i = 0; i < range_count; i++) {
        uint32_t slot = slot_of(d, ranges[i].buffer);
        if (ranges[i].buffer && slot == NO_BUFFER) {
            d->is_lost = 1; /* memory that the caller did not name */
            return NULL;
        }
        d->places[d->place_count + i] = (place){slot, ranges[i].offset, ranges[i].length};
    }
    if (scalar_bytes) {
        memcpy(d->scalars + d->scalar_bytes, scalars, scalar_bytes);
    }
    d->place_count += range_count;
    d->scalar_bytes += block;
    d->step_count++;
    return s;
}

ops_memos *ops_memos_create(void)
{
    return calloc(1, sizeof(ops_memos));
}

void ops_memos_destroy(ops_memos *memos)
{
    if (memos) {
        clear(memos);
        release_kernels(&memos->draft);
        free(memos->draft.steps);
        free(memos->draft.places);
        free(memos->draft.scalars);
        free(memos->table);
        free(memos);
    }
}

const ops_memo *ops_memos_find(const ops_memos *memos, const ops_cache_key *signature,
                               uint64_t key[2])
{
    XXH128_hash_t hash = XXH3_128bits(signature->words, signature->count * sizeof(uint64_t));
    key[0] = hash.low64;
    key[1] = hash.high64;
    return memos->capacity ? *find_slot(memos->table, memos->capacity, key) : NULL;
}

hal_status ops_memo_replay(ops_context *context, const ops_memo *memo, hal_buffer *const *operands)
{
    hal_buffer *buffers[OPS_MEMO_OPERANDS];
    uint32_t count = memo->operand_count;
    hal_status status = HAL_OK;
    memcpy(buffers, operands, count * sizeof *buffers);
    for (uint32_t i = 0; i < memo->temporary_count && !status; i++) {
        status = hal_buffer_create(context->device, HAL_MEMORY_DEVICE, memo->temporaries[i],
                                   &buffers[count]);
        count += !status;
        status = status == HAL_ERROR_OUT_OF_MEMORY ? OPS_MEMO_NO_ROOM : status;
    }
    for (uint32_t i = 0; i < memo->step_count && !status; i++) {
        status = run_step(context, memo, &memo->steps[i], buffers);
    }
    while (count > memo->operand_count) {
        hal_buffer_release(buffers[--count]);
    }
    return status;
}

void ops_memo_begin(ops_context *context, hal_buffer *const *operands, uint32_t count)
{
    draft *d = &context->memos->draft;
    d->is_open = 1;
    d->is_lost = count > OPS_MEMO_OPERANDS;
    d->operand_count = d->buffer_count = d->is_lost ? 0 : count;
    d->step_count = d->place_count = d->scalar_bytes = 0;
    memcpy(d->buffers, operands, d->operand_count * sizeof *operands);
}

void ops_memo_end(ops_context *context, const uint64_t key[2], int keep)
{
    ops_memos *memos = context->memos;
    draft *d = &memos->draft;
    d->is_open = 0;
    ops_memo *made = keep && !d->is_lost && make_room(memos) ? finish(d, key) : NULL;
    if (!made) {
        release_kernels(d);
        return;
    }
    d->step_count = 0; /* their kernels are the memo's now */
    ops_memo **slot = find_slot(memos->table, memos->capacity, key);
    if (*slot) {
        destroy(*slot);
        memos->count--;
    }
    *slot = made;
    memos->count++;
}

hal_status ops_record_dispatch(ops_context *context, hal_kernel *kernel, const uint32_t grid[3],
                               const hal_range *ranges, uint32_t range_count, const void *scalars,
                               uint32_t scalar_bytes)
{
    hal_status status = hal_queue_dispatch(context->queue, kernel, grid, ranges, range_count,
                                           scalars, scalar_bytes);
    if (status || !context->memos->draft.is_open) {
        return status;
    }
    step *s = note(context, ranges, range_count, scalars, scalar_bytes);
    if (s) {
        s->kind = STEP_DISPATCH;
        s->kernel = hal_kernel_retain(kernel);
        memcpy(s->grid, grid, sizeof s->grid);
    }
    return HAL_OK;
}

hal_status ops_record_copy(ops_context *context, hal_range source, hal_range target)
{
    hal_status status = hal_queue_copy(context->queue, source, target);
    if (!status && context->memos->draft.is_open) {
        const hal_range ranges[2] = {source, target};
        step *s = note(context, ranges, 2, NULL, 0);
        if (s) {
            s->kind = STEP_COPY;
        }
    }
    return status;
}

hal_status ops_record_fill(ops_context *context, hal_range target, uint32_t pattern)
{
    hal_status status = hal_queue_fill(context->queue, target, pattern);
    if (!status && context->memos->draft.is_open) {
        step *s = note(context, &target, 1, NULL, 0);
        if (s) {
            s->kind = STEP_FILL;
            s->grid[0] = pattern;
        }
    }
    return status;
}

hal_status ops_make_buffer(ops_context *context, uint64_t bytes, hal_buffer **buffer)
{
    hal_status status = hal_buffer_create(context->device, HAL_MEMORY_DEVICE, bytes, buffer);
    draft *d = &context->memos->draft;
    d->is_lost |= status != HAL_OK; /* what a call does for want of memory is not for next time */
    if (!status && d->is_open) {
        /* A temporary that was released may have left its address to this one. */
        uint32_t slot = slot_of(d, *buffer);
        while (slot != NO_BUFFER) {
            d->buffers[slot] = NULL;
            slot = slot_of(d, *buffer);
        }
        if (d->buffer_count < OPS_MEMO_OPERANDS) {
            d->bytes[d->buffer_count] = bytes;
            d->buffers[d->buffer_count++] = *buffer;
        } else {
            d->is_lost = 1;
        }
    }
    return status;
}

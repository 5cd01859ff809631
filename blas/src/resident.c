/* A table of operands on the device, the least recently used of which make room; resident.h. */
#include "resident.h"

#include "lane.h"
#include "watch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_OPERANDS 64

/* Smaller ones are copied faster than pages are looked at. */
#define MIN_BYTES (64u << 10)

/* Of the memory that is free when the first operand is to stay. */
#define DEFAULT_PERCENT 50

typedef enum policy { POLICY_OFF, POLICY_WATCH, POLICY_TOLD } policy;

/* What an operand is, apart from its elements. */
typedef struct operand_key {
    blas_matrix matrix;
    blas_number scale;
    blas_form form;
} operand_key;

typedef struct operand {
    blas_ticket ticket; /* 0: a free place */
    operand_key key;
    blas_span memory;  /* whole pages, where these are watched */
    ops_tensor tensor; /* without a buffer: not loaded yet, or only remembered */
    uint64_t bytes;    /* on the device; 0: only remembered */
    uint64_t used;
} operand;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static operand operands[MAX_OPERANDS];
static uint64_t clock_of_uses, tickets;
static policy chosen;
static uint64_t wanted_percent = DEFAULT_PERCENT, wanted_bytes; /* the latter, if it is not 0 */
static uint64_t limit; /* bytes of all operands on the device; 0: not known yet */

/* The parent's device is of no use to a child, and its memory is not watched there. */
static void reset_in_child(void)
{
    pthread_mutex_init(&lock, NULL);
    memset(operands, 0, sizeof operands);
    limit = 0;
}

/* Megabytes, or with % a share of the free memory. */
static void limit_choose(const char *text)
{
    char *end = NULL;
    const unsigned long long number = text ? strtoull(text, &end, 10) : 0;
    if (!text || !*text) {
        return;
    }
    if (number > 0 && number <= 100 && strcmp(end, "%") == 0) {
        wanted_percent = number;
    } else if (number > 0 && number < UINT32_MAX && *end == 0) {
        wanted_bytes = number * 1000000;
    } else {
        fprintf(
            stderr,
            "halyard blas: HALYARD_BLAS_RESIDENT_LIMIT: expected megabytes or 1%% to 100%%, got "
            "%s\n",
            text);
    }
}

__attribute__((constructor)) static void policy_choose(void)
{
    limit_choose(secure_getenv("HALYARD_BLAS_RESIDENT_LIMIT"));
    const char *text = secure_getenv("HALYARD_BLAS_RESIDENT");
    chosen = !text                        ? POLICY_OFF
             : strcmp(text, "watch") == 0 ? POLICY_WATCH
             : strcmp(text, "told") == 0  ? POLICY_TOLD
                                          : POLICY_OFF;
    pthread_atfork(NULL, NULL, reset_in_child);
}

bool blas_resident_is_on(void)
{
    return chosen == POLICY_TOLD || (chosen == POLICY_WATCH && blas_watch_is_available());
}

static size_t stored_bytes(const blas_matrix *m)
{
    const int64_t rows = m->is_transposed ? m->columns : m->rows;
    const int64_t columns = m->is_transposed ? m->rows : m->columns;
    return (size_t)((m->count - 1) * m->stride + (columns - 1) * m->leading + rows) *
           blas_type_bytes(m->type);
}

/* Of what blas_operand_load makes of it. */
static uint64_t loaded_bytes(const operand_key *key)
{
    const blas_matrix *m = &key->matrix;
    const bool is_expanded = key->form == BLAS_EXPANDED && blas_type_is_complex(m->type);
    return (uint64_t)(m->count * m->rows * m->columns) * blas_type_bytes(m->type) *
           (is_expanded ? 2 : 1);
}

static blas_span span_of(const void *data, size_t bytes)
{
    const uintptr_t first = (uintptr_t)data;
    return chosen == POLICY_WATCH ? blas_watch_pages(data, bytes)
                                  : (blas_span){first, first + bytes};
}

static bool is_same_matrix(const blas_matrix *x, const blas_matrix *y)
{
    return x->data == y->data && x->type == y->type && x->structure == y->structure &&
           x->rows == y->rows && x->columns == y->columns && x->leading == y->leading &&
           x->count == y->count && (x->count == 1 || x->stride == y->stride) &&
           x->is_transposed == y->is_transposed && x->is_conjugated == y->is_conjugated &&
           x->is_upper == y->is_upper && x->is_unit == y->is_unit;
}

static bool is_same(const operand_key *x, const operand_key *y)
{
    return is_same_matrix(&x->matrix, &y->matrix) && x->scale.re == y->scale.re &&
           x->scale.im == y->scale.im && x->form == y->form;
}

/* The functions from here on to the next comment about it are called under the lock. */
static void operand_clear(operand *o)
{
    hal_buffer_release(o->tensor.buffer);
    *o = (operand){0};
}

/* Pages that other operands share are watched anew when these are loaded the next time. */
static void operand_evict(operand *o)
{
    const blas_span memory = o->memory;
    const bool is_used = o->ticket != 0;
    operand_clear(o);
    if (is_used && chosen == POLICY_WATCH) {
        blas_watch_end(memory);
    }
}

static void clear_written(blas_span memory)
{
    for (int i = 0; i < MAX_OPERANDS; i++) {
        if (operands[i].ticket && blas_span_overlaps(operands[i].memory, memory)) {
            operand_clear(&operands[i]);
        }
    }
}

static bool is_clean(const operand *o)
{
    return chosen == POLICY_TOLD || blas_watch_is_clean(o->memory);
}

/* A free place, or that of the operand that was not used for the longest time. */
static operand *place_find(void)
{
    operand *oldest = &operands[0];
    for (int i = 0; i < MAX_OPERANDS && oldest->ticket; i++) {
        if (!operands[i].ticket || operands[i].used < oldest->used) {
            oldest = &operands[i];
        }
    }
    operand_evict(oldest);
    return oldest;
}

/* Bytes that all operands on the device may take. */
static uint64_t limit_find(void)
{
    if (limit == 0 && wanted_bytes > 0) {
        limit = wanted_bytes;
    } else if (limit == 0) {
        hal_device *device = blas_lane_device();
        hal_memory_statistics memory;
        limit = device && hal_device_get_memory(device, &memory) == HAL_OK
                    ? memory.free_bytes / 100 * wanted_percent + 1
                    : UINT64_MAX;
    }
    return limit;
}

/* Counts an operand that is about to be loaded. Those that were not used for the longest time leave
 * the device, until all are within the limit. */
static void operand_reserve(operand *loaded)
{
    loaded->bytes = loaded_bytes(&loaded->key);
    for (;;) {
        uint64_t sum = 0;
        operand *oldest = NULL;
        for (int i = 0; i < MAX_OPERANDS; i++) {
            operand *o = &operands[i];
            sum += o->bytes;
            if (o != loaded && o->bytes > 0 && (!oldest || o->used < oldest->used)) {
                oldest = o;
            }
        }
        if (sum <= limit_find() || !oldest) {
            return;
        }
        operand_evict(oldest);
    }
}

/* The operand, without a tensor; null: writes to its memory go unnoticed, or it is too large. */
static operand *operand_add(const operand_key *key)
{
    const size_t bytes = stored_bytes(&key->matrix);
    const blas_span memory = span_of(key->matrix.data, bytes);
    if (bytes < MIN_BYTES || loaded_bytes(key) > limit_find() ||
        (chosen == POLICY_WATCH && !blas_watch_mark(memory, clear_written))) {
        return NULL;
    }
    operand *made = place_find();
    *made = (operand){.ticket = ++tickets, .key = *key, .memory = memory, .used = ++clock_of_uses};
    return made;
}

static operand *operand_find(const operand_key *key)
{
    for (int i = 0; i < MAX_OPERANDS; i++) {
        operand *o = &operands[i];
        if (o->ticket && is_same(&o->key, key)) {
            if (is_clean(o)) {
                o->used = ++clock_of_uses;
                return o;
            }
            operand_clear(o);
        }
    }
    return NULL;
}

/* The functions below take the lock. */
bool blas_resident_find(const blas_matrix *matrix, blas_number scale, blas_form form,
                        ops_tensor *tensor, blas_ticket *ticket)
{
    const operand_key key = {*matrix, scale, form};
    *ticket = 0;
    if (!blas_resident_is_on()) {
        return false;
    }
    pthread_mutex_lock(&lock);
    operand *found = operand_find(&key);
    const bool is_loaded = found && found->tensor.buffer;
    if (is_loaded) {
        *tensor = found->tensor;
        hal_buffer_retain(tensor->buffer);
    } else {
        found = found ? found : operand_add(&key);
        *ticket = found ? found->ticket : 0;
        if (found) {
            operand_reserve(found);
        }
    }
    pthread_mutex_unlock(&lock);
    return is_loaded;
}

void blas_resident_keep(blas_ticket ticket, const ops_tensor *tensor)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; ticket && i < MAX_OPERANDS; i++) {
        if (operands[i].ticket == ticket && !operands[i].tensor.buffer) {
            operands[i].tensor = *tensor;
            hal_buffer_retain(tensor->buffer);
        }
    }
    pthread_mutex_unlock(&lock);
}

void blas_resident_drop(blas_ticket ticket)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; ticket && i < MAX_OPERANDS; i++) {
        if (operands[i].ticket == ticket) {
            operand_evict(&operands[i]);
        }
    }
    pthread_mutex_unlock(&lock);
}

bool blas_resident_drop_all(void)
{
    bool any = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_OPERANDS; i++) {
        any = any || operands[i].tensor.buffer;
        operand_evict(&operands[i]);
    }
    pthread_mutex_unlock(&lock);
    return any;
}

bool blas_resident_is_known(const blas_matrix *matrix)
{
    bool found = false;
    if (!blas_resident_is_on()) {
        return false;
    }
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX_OPERANDS && !found; i++) {
        found = operands[i].ticket && is_same_matrix(&operands[i].key.matrix, matrix) &&
                is_clean(&operands[i]);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void blas_resident_remember(const blas_call *call)
{
    for (int which = 0; blas_resident_is_on() && which < blas_factors_count(call); which++) {
        const blas_factors factors = blas_factors_of(call, which);
        const operand_key keys[2] = {{factors.x, {1, 0}, BLAS_EXPANDED},
                                     {factors.y, {1, 0}, BLAS_PAIRS}};
        pthread_mutex_lock(&lock);
        for (int i = 0; i < 2; i++) {
            const bool is_written = keys[i].matrix.data == call->c;
            if (!is_written && !operand_find(&keys[i])) {
                operand_add(&keys[i]);
            }
        }
        pthread_mutex_unlock(&lock);
    }
}

void blas_resident_call_writes(const blas_call *call)
{
    const blas_matrix c = {.type = blas_call_type(call),
                           .rows = call->m,
                           .columns = call->n,
                           .leading = call->ldc,
                           .count = call->batch,
                           .stride = call->stride_c};
    if (chosen != POLICY_OFF && !blas_call_is_empty(call)) {
        halyard_blas_written(call->c, stored_bytes(&c));
    }
}

void halyard_blas_written(const void *data, size_t bytes)
{
    const uintptr_t first = (uintptr_t)data;
    pthread_mutex_lock(&lock);
    clear_written((blas_span){first, first + bytes});
    pthread_mutex_unlock(&lock);
}

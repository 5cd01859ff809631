/* collective.c: random collectives and their references. */
#include "hal/collective.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "math/number.h"

enum { GUARD = 16 }; /* bytes after the result, which have to stay */

static const uint8_t guard_byte = 0xA7;

collective_rank collective_rank_of(case_run *run, hal_comm *comm, hal_queue *queue)
{
    hal_comm_status status;
    case_ok(run, hal_comm_get_status(comm, &status), "hal_comm_get_status");
    return (collective_rank){run, comm, queue, status.rank, status.count};
}

static bool kind_reduces(uint32_t kind)
{
    return kind == HAL_COLLECTIVE_ALL_REDUCE || kind == HAL_COLLECTIVE_REDUCE_SCATTER ||
           kind == HAL_COLLECTIVE_REDUCE;
}

/* Elements of send and recv in units of count. */
static uint64_t parts_of(uint32_t kind, bool recv, uint32_t ranks)
{
    const bool many =
        recv ? kind == HAL_COLLECTIVE_ALL_GATHER || kind == HAL_COLLECTIVE_ALL_TO_ALL
             : kind == HAL_COLLECTIVE_REDUCE_SCATTER || kind == HAL_COLLECTIVE_ALL_TO_ALL;
    return many ? ranks : 1;
}

collective collective_random(random_state *random, const hal_device_info *info, uint32_t ranks,
                             uint64_t most)
{
    collective is = {.seed = random_next(random)};
    const uint64_t size = random_below(random, 12);
    is.what.kind = (uint32_t)random_below(random, HAL_COLLECTIVE_EXCHANGE + 1);
    is.what.reduction = (uint32_t)random_below(random, HAL_REDUCE_MAX + 1);
    is.what.root = (uint32_t)random_below(random, ranks);
    /* A reference takes the elements of all ranks for each of them. */
    const uint64_t limit = size == 0 ? 2 : size < 8 ? 2000 : size < 11 ? 40000 : most;
    is.count = random_below(random, (limit < most ? limit : most) / ranks + 1);
    do {
        is.what.type = (hal_type)(1 + random_below(random, HAL_TYPE_COUNT - 1));
    } while (kind_reduces(is.what.kind) &&
             (!(hal_types_storable(info->storage_types) & HAL_TYPE_BIT(is.what.type)) ||
              (is.what.type != HAL_TYPE_BOOL &&
               !(info->arithmetic_types & HAL_TYPE_BIT(hal_type_of_value(is.what.type))))));
    if (is.what.type == HAL_TYPE_BOOL && is.what.reduction == HAL_REDUCE_MEAN) {
        is.what.reduction = HAL_REDUCE_MAX;
    }
    is.offset[0] = random_below(random, 2) ? (uint32_t)random_below(random, 40) : 0;
    is.offset[1] = random_below(random, 2) ? (uint32_t)random_below(random, 40) : 0;
    is.in_place = random_below(random, 3) == 0 && is.what.kind != HAL_COLLECTIVE_ALL_TO_ALL &&
                  is.what.kind != HAL_COLLECTIVE_EXCHANGE;
    return is;
}

static void collective_print(const collective *is, char *text, size_t bytes)
{
    static const char *const kinds[] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                        "reduce",     "all_to_all", "exchange"};
    snprintf(text, bytes, "%s of %llu %s, reduction %u, root %u, offsets %u and %u%s",
             kinds[is->what.kind], (unsigned long long)is->count, hal_type_name(is->what.type),
             is->what.reduction, is->what.root, is->offset[0], is->offset[1],
             is->in_place ? ", in place" : "");
}

/* The peer of an exchange: ranks are paired from `root` on; the last of an odd number is alone. */
static uint32_t peer_of(const collective *is, uint32_t rank, uint32_t ranks)
{
    const uint32_t place = (rank + is->what.root) % ranks, other = place ^ 1u;
    return other >= ranks ? rank : (other + ranks - is->what.root % ranks) % ranks;
}

/* What a rank sends. */
static void *inputs_create(case_run *run, const collective *is, uint32_t rank, uint32_t ranks)
{
    const uint64_t elements = is->count * parts_of(is->what.kind, false, ranks);
    random_state random = {is->seed + rank * UINT64_C(0x9e3779b97f4a7c15)};
    void *data = malloc(elements * hal_type_size(is->what.type) + 1);
    case_check(run, data != NULL, "no host memory");
    const bool is_signed = hal_type_is_signed(is->what.type) || hal_type_is_float(is->what.type);
    random_fill(&random, is->what.type, is_signed ? -100 : 0,
                is->what.type == HAL_TYPE_BOOL ? 2 : 100, data, elements);
    return data;
}

/* Whether y takes the place of x as the smaller one, as the IR's MIN says. */
static bool is_less(double y, double x)
{
    return y < x || (y == x && signbit(y) && !signbit(x));
}

/* The reduction of element i of all inputs, in the order of the ranks; bits of the type. */
static uint64_t reduce_element(const collective *is, void *const *inputs, uint32_t ranks,
                               uint64_t i)
{
    const hal_type type = is->what.type, value = hal_type_of_value(type);
    const uint32_t reduction = is->what.reduction;
    double real = 0;
    uint64_t whole = 0;
    for (uint32_t q = 0; q < ranks; q++) {
        const uint64_t bits = number_load(type, inputs[q], i);
        if (hal_type_is_float(type)) {
            const double x = number_value(type, bits);
            const double sum = value == HAL_TYPE_F32 ? (double)((float)real + (float)x) : real + x;
            real = q == 0                        ? x
                   : reduction == HAL_REDUCE_MIN ? (is_less(x, real) ? x : real)
                   : reduction == HAL_REDUCE_MAX ? (is_less(real, x) ? x : real)
                                                 : sum;
            continue;
        }
        const uint64_t x = type == HAL_TYPE_BOOL ? bits : number_widen(type, bits);
        const bool less = hal_type_is_signed(type)
                              ? number_signed(value, x) < number_signed(value, whole)
                              : x < whole;
        whole = q == 0                        ? x
                : reduction == HAL_REDUCE_MIN ? (less ? x : whole)
                : reduction == HAL_REDUCE_MAX ? (less ? whole : x)
                : type == HAL_TYPE_BOOL       ? (whole | x)
                                              : (whole + x) & number_mask(value);
    }
    if (hal_type_is_float(type)) {
        if (reduction == HAL_REDUCE_MEAN) {
            real = value == HAL_TYPE_F32 ? (double)((float)real / (float)ranks) : real / ranks;
        }
        return number_bits(type, real);
    }
    if (reduction == HAL_REDUCE_MEAN) {
        whole = hal_type_is_signed(type)
                    ? (uint64_t)(number_signed(value, whole) / (int64_t)ranks) & number_mask(value)
                    : whole / ranks;
    }
    return type == HAL_TYPE_BOOL ? whole : number_narrow(type, whole);
}

/* The bits of element i of the rank's result. */
static uint64_t expected_element(const collective_rank *on, const collective *is,
                                 void *const *inputs, uint64_t i)
{
    const hal_type type = is->what.type;
    const uint64_t count = is->count;
    switch (is->what.kind) {
    case HAL_COLLECTIVE_ALL_GATHER:
        return number_load(type, inputs[i / count], i % count);
    case HAL_COLLECTIVE_REDUCE_SCATTER:
        return reduce_element(is, inputs, on->ranks, on->rank * count + i);
    case HAL_COLLECTIVE_BROADCAST:
        return number_load(type, inputs[is->what.root], i);
    case HAL_COLLECTIVE_ALL_TO_ALL:
        return number_load(type, inputs[i / count], on->rank * count + i % count);
    case HAL_COLLECTIVE_EXCHANGE:
        return number_load(type, inputs[peer_of(is, on->rank, on->ranks)], i);
    default:
        return reduce_element(is, inputs, on->ranks, i);
    }
}

static uint64_t result_elements(const collective_rank *on, const collective *is)
{
    return is->what.kind == HAL_COLLECTIVE_REDUCE && is->what.root != on->rank
               ? 0
               : is->count * parts_of(is->what.kind, true, on->ranks);
}

/* Where send and recv begin, in elements. In place, the smaller one is a part of the other. */
static void places(const collective_rank *on, const collective *is, uint64_t begin[2])
{
    const uint32_t kind = is->what.kind;
    begin[0] = is->offset[0];
    begin[1] = is->in_place ? is->offset[0] : is->offset[1];
    if (is->in_place && kind == HAL_COLLECTIVE_ALL_GATHER) {
        begin[0] += on->rank * is->count;
    }
    if (is->in_place && kind == HAL_COLLECTIVE_REDUCE_SCATTER) {
        begin[1] += on->rank * is->count;
    }
}

collective_flight collective_start(collective_rank *on, const collective *is)
{
    case_run *run = on->run;
    hal_device *device = hal_queue_get_device(on->queue);
    const uint64_t size = hal_type_size(is->what.type);
    collective_flight flight = {.on = on, .is = *is};
    uint64_t begin[2], elements[2];
    places(on, is, begin);
    for (uint32_t i = 0; i < 2; i++) {
        elements[i] = is->count * parts_of(is->what.kind, i == 1, on->ranks);
    }
    const uint64_t bytes[2] = {
        (begin[0] + elements[0]) * size,
        ((begin[1] + elements[1]) * size + 3) / 4 * 4 + GUARD,
    };
    const uint64_t both = bytes[0] > bytes[1] ? bytes[0] : bytes[1];
    for (uint32_t i = 0; i < 2; i++) {
        flight.buffers[i] = flight.buffers[0];
        if (i == 0 || !is->in_place) {
            case_ok(run,
                    hal_buffer_create(device, HAL_MEMORY_DEVICE,
                                      is->in_place ? both + GUARD : bytes[i], &flight.buffers[i]),
                    "hal_buffer_create");
        }
    }
    const hal_range whole = {flight.buffers[1], 0, hal_buffer_get_bytes(flight.buffers[1]) / 4 * 4};
    case_ok(run, hal_queue_fill(on->queue, whole, guard_byte * UINT32_C(0x01010101)), "fill");
    void *data = inputs_create(run, is, on->rank, on->ranks);
    const hal_status written =
        hal_queue_write(on->queue, flight.buffers[0], begin[0] * size, data, elements[0] * size);
    free(data);
    case_ok(run, written, "hal_queue_write");
    hal_collective what = is->what;
    what.root = what.kind == HAL_COLLECTIVE_EXCHANGE ? peer_of(is, on->rank, on->ranks) : what.root;
    case_ok(run,
            hal_queue_collective(on->queue, on->comm, &what,
                                 (hal_range){flight.buffers[0], begin[0] * size, HAL_WHOLE},
                                 (hal_range){flight.buffers[1], begin[1] * size, HAL_WHOLE},
                                 is->count),
            "hal_queue_collective");
    return flight;
}

/* Compares the result with the reference; false with what differs. */
static bool result_check(const collective_flight *flight, const uint8_t *seen, void *const *inputs,
                         char *text, size_t bytes)
{
    const collective_rank *on = flight->on;
    const collective *is = &flight->is;
    const uint64_t size = hal_type_size(is->what.type), count = result_elements(on, is);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t bits = number_load(is->what.type, seen, i);
        const uint64_t expected = expected_element(on, is, inputs, i);
        if (bits != expected) {
            snprintf(text, bytes, "element %llu has bits %llx instead of %llx",
                     (unsigned long long)i, (unsigned long long)bits, (unsigned long long)expected);
            return false;
        }
    }
    for (uint64_t i = 0; !is->in_place && i < GUARD; i++) {
        if (seen[count * size + i] != guard_byte) {
            snprintf(text, bytes, "byte %llu after the result was written", (unsigned long long)i);
            return false;
        }
    }
    return true;
}

void collective_finish(collective_flight *flight)
{
    collective_rank *on = flight->on;
    const collective *is = &flight->is;
    const uint64_t size = hal_type_size(is->what.type);
    uint64_t begin[2];
    char what[160], text[160] = "";
    void *inputs[HAL_COMM_MAX_RANKS] = {0};
    places(on, is, begin);
    collective_print(is, what, sizeof what);
    const uint64_t bytes = result_elements(on, is) * size + (is->in_place ? 0 : GUARD);
    uint8_t *seen = malloc(bytes + 1);
    case_check(on->run, seen != NULL, "no host memory");
    const hal_status status =
        hal_queue_read(on->queue, flight->buffers[1], begin[1] * size, bytes, seen);
    for (uint32_t q = 0; q < on->ranks; q++) {
        inputs[q] = inputs_create(on->run, is, q, on->ranks);
    }
    const bool same = status == HAL_OK && result_check(flight, seen, inputs, text, sizeof text);
    for (uint32_t q = 0; q < on->ranks; q++) {
        free(inputs[q]);
    }
    free(seen);
    if (flight->buffers[1] != flight->buffers[0]) {
        hal_buffer_release(flight->buffers[1]);
    }
    hal_buffer_release(flight->buffers[0]);
    case_ok(on->run, status, what);
    case_check(on->run, same, "rank %u of %u: %s: %s", on->rank, on->ranks, what, text);
}

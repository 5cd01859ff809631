/* queue.c: commands take effect in order, also when they overlap; batches of every size. */
#include <hal/queue.h>

#include <stdio.h>
#include <string.h>

#include "case/cases.h"
#include "hal/fixture.h"
#include "math/random.h"

#define WORDS 512u /* of each buffer of a random sequence */
#define BUFFERS 4u
#define LARGE 10000u /* words of a write with dedicated memory */

/* Expected value of a buffer's word, and the command that wrote it. */
typedef struct model_word {
    uint32_t value, command;
    const char *kind;
} model_word;

typedef struct sequence_model {
    model_word all[BUFFERS][WORDS];
    uint32_t command; /* that is recorded now, from 1 on */
} sequence_model;

/* The random numbers do not depend on the commands, so fewer commands are the first ones. */
typedef struct sequence_case {
    uint32_t turn, commands;
} sequence_case;

static const case_size sequence_sizes[] = {CASE_SIZE(sequence_case, commands, "commands", 0, 1)};

/* Each command needs the one before: x -> y -> x -> ... */
static void chain(case_run *run, const void *parameters)
{
    const uint32_t commands = ((const sequence_case *)parameters)->commands;
    enum { COUNT = 70 };
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *buffers[2] = {words_create(run, run->queue, COUNT, 1, 1),
                              words_create(run, run->queue, COUNT, 0, 0)};
    uint32_t start = 1, step = 1;
    for (uint32_t i = 0; i < commands; i++) {
        scale_dispatch(run, run->queue, kernel, buffers[i % 2], buffers[(i + 1) % 2], COUNT, 3, i);
        start = start * 3 + i;
        step *= 3;
    }
    words_check(run, run->queue, buffers[commands % 2], COUNT, start, step, "the last buffer");
}

static void print_chain(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    snprintf(name, bytes, "queue/chain(commands=%u)",
             ((const sequence_case *)parameters)->commands);
}

static const case_family chains = {.function = chain,
                                   .bytes = sizeof(sequence_case),
                                   .sizes = sequence_sizes,
                                   .size_count = 1,
                                   .one_stream = true,
                                   .print = print_chain};

static void model_put(sequence_model *model, uint32_t buffer, uint32_t word, uint32_t value,
                      const char *kind)
{
    model->all[buffer][word] = (model_word){value, model->command, kind};
}

static void random_step(case_run *run, random_state *random, hal_kernel *kernel,
                        hal_buffer *const *buffers, sequence_model *model)
{
    const uint32_t from = (uint32_t)random_below(random, BUFFERS);
    const uint32_t to = (from + 1 + (uint32_t)random_below(random, BUFFERS - 1)) % BUFFERS;
    const uint32_t count = 1 + (uint32_t)random_below(random, 64);
    /* Bindings begin at aligned offsets; copies, fills and writes at any word. */
    const uint32_t unit = run->info->binding_alignment > 4 ? run->info->binding_alignment / 4 : 1;
    const uint32_t slots = (WORDS - 64) / unit + 1;
    const uint32_t far_x = (uint32_t)random_below(random, slots) * unit;
    const uint32_t far_out = (uint32_t)random_below(random, slots) * unit;
    const uint32_t first = (uint32_t)random_below(random, WORDS - 64);
    const uint32_t second = (uint32_t)random_below(random, WORDS - 64);
    const hal_range source = {buffers[from], 4ull * first, 4ull * count};
    const hal_range target = {buffers[to], 4ull * second, 4ull * count};
    const uint32_t value = (uint32_t)random_next(random);
    uint32_t written[64];
    switch (random_below(random, 10)) {
    case 0:
        for (uint32_t k = 0; k < count; k++) {
            model_put(model, to, second + k, value, "fill");
        }
        case_ok(run, hal_queue_fill(run->queue, target, value), "fill");
        break;
    case 1:
    case 2:
        for (uint32_t k = 0; k < count; k++) {
            model_put(model, to, second + k, model->all[from][first + k].value, "copy");
        }
        case_ok(run, hal_queue_copy(run->queue, source, target), "copy");
        break;
    case 3:
        for (uint32_t k = 0; k < count; k++) {
            written[k] = value + k;
            model_put(model, to, second + k, written[k], "write");
        }
        case_ok(run, hal_queue_write(run->queue, buffers[to], 4ull * second, written, 4ull * count),
                "write");
        break;
    case 4:
        case_ok(run, hal_queue_flush(run->queue, NULL), "flush");
        break;
    default: {
        const hal_range ranges[2] = {{buffers[from], 4ull * far_x, 4ull * count},
                                     {buffers[to], 4ull * far_out, 4ull * count}};
        const scale_scalars scalars = {count, value | 1, first};
        const uint32_t grid[3] = {(count + SCALE_GROUP - 1) / SCALE_GROUP, 1, 1};
        for (uint32_t k = 0; k < count; k++) {
            const uint32_t x = model->all[from][far_x + k].value;
            model_put(model, to, far_out + k, x * scalars.scale + scalars.shift, "kernel");
        }
        case_ok(run,
                hal_queue_dispatch(run->queue, kernel, grid, ranges, 2, &scalars, sizeof scalars),
                "dispatch");
    }
    }
}

static void model_check(case_run *run, const sequence_model *model, hal_buffer *buffer,
                        uint32_t number)
{
    uint32_t words[WORDS];
    case_ok(run, hal_queue_read(run->queue, buffer, 0, sizeof words, words), "read");
    for (uint32_t k = 0; k < WORDS; k++) {
        const model_word *word = &model->all[number][k];
        case_check(run, words[k] == word->value,
                   "word %u of buffer %u is %u instead of %u, which command %u, a %s, put there", k,
                   number, words[k], word->value, word->command, word->kind);
    }
}

/* Kernels, copies, fills and writes on parts of four buffers, with a flush now and then, compared
 * with the same on the host. */
static void random_order(case_run *run, const void *parameters)
{
    const uint32_t commands = ((const sequence_case *)parameters)->commands;
    static sequence_model model;
    random_state random = {run->seed};
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *buffers[BUFFERS] = {NULL};
    for (uint32_t i = 0; i < BUFFERS; i++) {
        buffers[i] = words_create(run, run->queue, WORDS, i * 1000, i + 1);
        for (uint32_t k = 0; k < WORDS; k++) {
            model.all[i][k] = (model_word){.value = k * (i + 1) + i * 1000, .kind = "first write"};
        }
    }
    for (model.command = 1; model.command <= commands; model.command++) {
        random_step(run, &random, kernel, buffers, &model);
    }
    for (uint32_t i = 0; i < BUFFERS; i++) {
        model_check(run, &model, buffers[i], i);
    }
}

static void print_random_order(const void *parameters, uint64_t seed, char *name, size_t bytes)
{
    const sequence_case *tested = parameters;
    snprintf(name, bytes, "queue/random_order(turn=%u,commands=%u,seed=%llu)", tested->turn,
             tested->commands, (unsigned long long)seed);
}

static const case_family random_orders = {.function = random_order,
                                          .bytes = sizeof(sequence_case),
                                          .sizes = sequence_sizes,
                                          .size_count = 1,
                                          .one_stream = true,
                                          .print = print_random_order};

/* A source that is overwritten right after it was read by an earlier command. */
static void source_overwritten(case_run *run, const void *parameters)
{
    enum { COUNT = 20000 };
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, COUNT, 5, 2);
    hal_buffer *y = words_create(run, run->queue, COUNT, 0, 0);
    scale_dispatch(run, run->queue, kernel, x, y, COUNT, 2, 1);
    case_ok(run, hal_queue_fill(run->queue, range_of(x), 77), "fill");
    words_check(run, run->queue, y, COUNT, 11, 4, "what was read before");
    words_check(run, run->queue, x, COUNT, 77, 0, "what was filled after");
}

static void written_data_is_copied(case_run *run, const void *parameters)
{
    enum { COUNT = 3000 };
    static uint32_t data[COUNT];
    hal_buffer *x = words_create(run, run->queue, COUNT, 0, 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        data[i] = i + 9;
    }
    case_ok(run, hal_queue_write(run->queue, x, 0, data, sizeof data), "write");
    memset(data, 0xee, sizeof data);
    words_check(run, run->queue, x, COUNT, 9, 1, "what was written");
}

/* Odd offsets and lengths; adjacent bytes stay. */
static void partial_writes(case_run *run, const void *parameters)
{
    enum { BYTES = 301 };
    uint8_t model[BYTES], read[BYTES];
    random_state random = {run->seed};
    for (int i = 0; i < BYTES; i++) {
        model[i] = (uint8_t)random_next(&random);
    }
    hal_buffer *buffer = case_buffer(run, run->device, HAL_MEMORY_DEVICE, BYTES);
    case_ok(run, hal_queue_write(run->queue, buffer, 0, model, BYTES), "write");
    for (int turn = 0; turn < 60; turn++) {
        const uint64_t offset = random_below(&random, BYTES);
        const uint64_t bytes = random_below(&random, BYTES - offset + 1);
        for (uint64_t i = 0; i < bytes; i++) {
            model[offset + i] = (uint8_t)random_next(&random);
        }
        case_ok(run, hal_queue_write(run->queue, buffer, offset, model + offset, bytes),
                "a write of a part");
        const uint64_t from = random_below(&random, BYTES);
        const uint64_t length = random_below(&random, BYTES - from + 1);
        case_ok(run, hal_queue_read(run->queue, buffer, from, length, read), "a read of a part");
        case_check(run, memcmp(read, model + from, length) == 0,
                   "%llu bytes at %llu are not what was written", (unsigned long long)length,
                   (unsigned long long)from);
    }
}

/* A large write reuses the memory of an earlier one that has completed. */
static void batch_disturb(case_run *run, random_state *random, hal_buffer *other, hal_point *point)
{
    static uint32_t data[LARGE];
    const uint32_t first = UINT32_C(1) << random_below(random, 11);
    switch (random_below(random, 64)) {
    case 0:
        case_ok(run, hal_queue_set_batch(run->queue, first, 2 * first), "set the batch");
        break;
    case 1:
        case_ok(run, hal_queue_flush(run->queue, point), "flush");
        break;
    case 2:
        case_ok(run, hal_point_wait(*point, HAL_WAIT_FOREVER), "wait for a point");
        break;
    case 3:
    case 4:
        case_ok(run, hal_queue_write(run->queue, other, 0, data, sizeof data), "a large write");
        break;
    default:
        break;
    }
}

/* Many writes to one place; a copy after each keeps what it wrote. First in batches of the greatest
 * length, then in batches that end anywhere. */
/* So long that a device's threads may copy them, from and to any address. */
static void long_writes(case_run *run, const void *parameters)
{
    enum { MOST = 5 << 20, ROOM = MOST + 64 };
    static const uint32_t lengths[] = {(1 << 20) + 3, (3 << 20) - 1, MOST};
    uint8_t *model = case_allocate(run, ROOM, 1), *read = case_allocate(run, ROOM, 1);
    random_state random = {run->seed};
    hal_buffer *buffer = case_buffer(run, run->device, HAL_MEMORY_DEVICE, ROOM);
    for (uint32_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        const uint32_t bytes = lengths[i], offset = (uint32_t)random_below(&random, 64);
        const uint32_t key = (uint32_t)random_next(&random);
        for (uint32_t k = 0; k < bytes; k++) {
            model[k] = (uint8_t)((k + key) * UINT32_C(2654435761) >> 24);
        }
        memset(read, 0, ROOM);
        case_ok(run, hal_queue_write(run->queue, buffer, offset, model, bytes), "a long write");
        case_ok(run, hal_queue_read(run->queue, buffer, offset, bytes, read + i), "a long read");
        case_check(run, memcmp(read + i, model, bytes) == 0,
                   "%u bytes at %u are not what was written", bytes, offset);
        case_check(run, read[i + bytes] == 0, "%u bytes at %u: one more was read", bytes, offset);
    }
}

static void many_writes(case_run *run, const void *parameters)
{
    enum { WRITES = 1500, MOST = 2000 };
    static uint32_t starts[WRITES], counts[WRITES], words[MOST];
    random_state random = {run->seed};
    hal_point point = {NULL, 0};
    hal_buffer *x = words_create(run, run->queue, MOST, 0, 0);
    hal_buffer *y = words_create(run, run->queue, WRITES * MOST, 0, 0);
    hal_buffer *z = words_create(run, run->queue, LARGE, 0, 0);
    uint32_t *seen = case_allocate(run, WRITES, sizeof words);
    case_ok(run, hal_queue_set_batch(run->queue, HAL_QUEUE_BATCH_COMMANDS, 0), "set the batch");
    for (uint32_t i = 0; i < WRITES; i++) {
        const uint64_t bytes = 4 * (1 + random_below(&random, MOST));
        starts[i] = (uint32_t)random_next(&random);
        counts[i] = (uint32_t)(bytes / 4);
        for (uint32_t k = 0; k < counts[i]; k++) {
            words[k] = starts[i] + k;
        }
        const hal_range from = {x, 0, bytes}, to = {y, i * sizeof words, bytes};
        case_ok(run, hal_queue_write(run->queue, x, 0, words, bytes), "write");
        case_ok(run, hal_queue_copy(run->queue, from, to), "copy");
        if (i >= WRITES / 2) {
            batch_disturb(run, &random, z, &point);
        }
    }
    case_ok(run, hal_queue_read(run->queue, y, 0, sizeof words * WRITES, seen), "read");
    for (uint32_t i = 0; i < WRITES; i++) {
        for (uint32_t k = 0; k < counts[i]; k++) {
            case_check(run, seen[i * MOST + k] == starts[i] + k,
                       "word %u of write %u is %u instead of %u", k, i, seen[i * MOST + k],
                       starts[i] + k);
        }
    }
    hal_queue_set_batch(run->queue, 0, 0);
}

/* Copies up to an odd end, and a pattern whose bytes differ. */
static void fill_to_end(case_run *run, const void *parameters)
{
    enum { BYTES = 1027 };
    uint8_t data[BYTES], read[BYTES];
    for (int i = 0; i < BYTES; i++) {
        data[i] = (uint8_t)(i * 11 + 1);
    }
    hal_buffer *one = case_buffer(run, run->device, HAL_MEMORY_DEVICE, BYTES);
    hal_buffer *two = case_buffer(run, run->device, HAL_MEMORY_DEVICE, BYTES);
    const hal_range part = {two, 4, 1020};
    case_ok(run, hal_queue_write(run->queue, one, 0, data, BYTES), "write");
    case_ok(run, hal_queue_copy(run->queue, range_of(one), range_of(two)), "copy");
    case_ok(run, hal_queue_read(run->queue, two, 0, BYTES, read), "read");
    case_check(run, memcmp(data, read, BYTES) == 0, "the copy differs");
    case_ok(run, hal_queue_fill(run->queue, part, 0x04030201), "fill");
    case_ok(run, hal_queue_read(run->queue, two, 0, BYTES, read), "read");
    for (int i = 0; i < BYTES; i++) {
        const uint8_t expected = i >= 4 && i < 1024 ? (uint8_t)(i % 4 + 1) : data[i];
        case_check(run, read[i] == expected, "byte %d is %u instead of %u", i, read[i], expected);
    }
}

/* Random bytes in x and `from`, and their complements in y and `to`. */
static void write_opposites(case_run *run, random_state *random, uint8_t *x, hal_buffer *from,
                            uint8_t *y, hal_buffer *to, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        x[i] = (uint8_t)random_next(random);
        y[i] = (uint8_t)~x[i];
    }
    case_ok(run, hal_queue_write(run->queue, from, 0, x, bytes), "write");
    case_ok(run, hal_queue_write(run->queue, to, 0, y, bytes), "write");
}

/* Copies from and to any byte, of any length; what is next to the target stays. */
static void copy_of_any_bytes(case_run *run, const void *parameters)
{
    enum { BYTES = 64, TURNS = 120 };
    uint8_t x[BYTES], y[BYTES], read[BYTES];
    random_state random = {run->seed};
    hal_buffer *from = case_buffer(run, run->device, HAL_MEMORY_DEVICE, BYTES);
    hal_buffer *to = case_buffer(run, run->device, HAL_MEMORY_DEVICE, BYTES);
    write_opposites(run, &random, x, from, y, to, BYTES);
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        const uint64_t length = 1 + random_below(&random, 20);
        const uint64_t source = random_below(&random, BYTES - length);
        const uint64_t target = random_below(&random, BYTES - length);
        case_ok(run, hal_queue_transfer(run->queue, from, source, run->queue, to, target, length),
                "transfer");
        memcpy(y + target, x + source, length);
    }
    case_ok(run, hal_queue_read(run->queue, to, 0, BYTES, read), "read");
    for (uint32_t i = 0; i < BYTES; i++) {
        case_check(run, read[i] == y[i], "byte %u is %u instead of %u", i, read[i], y[i]);
    }
}

/* The same with lengths above each power of two up to 1 MiB: long copies may go another way. */
static void long_copies(case_run *run, const void *parameters)
{
    enum { LEAST = 5, MOST = 20, AWAY = 33, BYTES = (1 << MOST) + 2 * AWAY };
    uint8_t *x = case_allocate(run, BYTES, 1), *y = case_allocate(run, BYTES, 1);
    uint8_t *seen = case_allocate(run, BYTES, 1);
    random_state random = {run->seed};
    hal_buffer *from = case_buffer(run, run->device, HAL_MEMORY_DEVICE, BYTES);
    hal_buffer *to = case_buffer(run, run->device, HAL_MEMORY_DEVICE, BYTES);
    write_opposites(run, &random, x, from, y, to, BYTES);
    for (uint32_t k = LEAST; k <= MOST; k++) {
        const uint64_t length = (UINT64_C(1) << k) + random_below(&random, AWAY);
        const uint64_t source = 1 | random_below(&random, AWAY);
        const uint64_t target = 1 + random_below(&random, AWAY);
        const uint64_t end = target + length + 16 < BYTES ? target + length + 16 : BYTES;
        case_ok(run, hal_queue_transfer(run->queue, from, source, run->queue, to, target, length),
                "transfer");
        memcpy(y + target, x + source, length);
        case_ok(run, hal_queue_read(run->queue, to, 0, end, seen), "read");
        for (uint64_t i = 0; i < end; i++) {
            case_check(run, seen[i] == y[i],
                       "a copy of %llu bytes from %llu to %llu: byte %llu is %u instead of %u",
                       (unsigned long long)length, (unsigned long long)source,
                       (unsigned long long)target, (unsigned long long)i, seen[i], y[i]);
        }
    }
}

/* A kernel that writes a part of a binding that it only writes leaves the rest as it is. */
static void unwritten_bytes(case_run *run, const void *parameters)
{
    enum { COUNT = 40000, WRITTEN = 100 };
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, COUNT, 1, 1);
    hal_buffer *out = words_create(run, run->queue, COUNT, 5, 7);
    uint32_t *words = case_allocate(run, COUNT, sizeof *words);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    scale_dispatch(run, run->queue, kernel, x, out, WRITTEN, 3, 2);
    case_ok(run, hal_queue_read(run->queue, out, 0, 4ull * COUNT, words), "read");
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t expected = i < WRITTEN ? 3 * (i + 1) + 2 : 7 * i + 5;
        case_check(run, words[i] == expected, "word %u, which the kernel %s, is %u instead of %u",
                   i, i < WRITTEN ? "writes" : "does not write", words[i], expected);
    }
}

static void own_bindings(case_run *run, const void *parameters)
{
    enum { DISPATCHES = HAL_QUEUE_BATCH_COMMANDS - 1, SPACING = 64 };
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, DISPATCHES * SPACING, 1, 1);
    hal_buffer *y = words_create(run, run->queue, DISPATCHES * SPACING, 0, 0);
    const uint32_t grid[3] = {1, 1, 1};
    uint32_t *words = case_allocate(run, DISPATCHES * SPACING, sizeof *words);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_ok(run, hal_queue_set_batch(run->queue, DISPATCHES, DISPATCHES), "hal_queue_set_batch");
    for (uint32_t i = 0; i < DISPATCHES; i++) {
        const hal_range ranges[2] = {{x, 4ull * SPACING * i, 128}, {y, 4ull * SPACING * i, 128}};
        const scale_scalars scalars = {2, 1, i};
        case_ok(run,
                hal_queue_dispatch(run->queue, kernel, grid, ranges, 2, &scalars, sizeof scalars),
                "dispatch");
    }
    case_ok(run, hal_queue_read(run->queue, y, 0, 4ull * DISPATCHES * SPACING, words), "read");
    case_ok(run, hal_queue_set_batch(run->queue, 0, 0), "hal_queue_set_batch");
    for (uint32_t i = 0; i < DISPATCHES * SPACING; i++) {
        const uint32_t expected = i % SPACING < 2 ? i + 1 + i / SPACING : 0;
        case_check(run, words[i] == expected, "of dispatch %u word %u is %u instead of %u",
                   i / SPACING, i % SPACING, words[i], expected);
    }
}

static void zero_grid(case_run *run, const void *parameters)
{
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, 8, 1, 1);
    hal_buffer *y = words_create(run, run->queue, 8, 7, 0);
    const hal_range ranges[2] = {range_of(x), range_of(y)};
    const scale_scalars scalars = {8, 1, 0};
    for (int d = 0; d < 3; d++) {
        uint32_t grid[3] = {1, 1, 1};
        grid[d] = 0;
        case_ok(run,
                hal_queue_dispatch(run->queue, kernel, grid, ranges, 2, &scalars, sizeof scalars),
                "a grid of 0");
    }
    words_check(run, run->queue, y, 8, 7, 0, "after grids of 0");
}

static void large_grid(case_run *run, const void *parameters)
{
    enum { COUNT = 65535 * (int)SCALE_GROUP };
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, COUNT, 3, 7);
    hal_buffer *y = words_create(run, run->queue, COUNT, 0, 0);
    scale_dispatch(run, run->queue, kernel, x, y, COUNT, 2, 1);
    words_check(run, run->queue, y, COUNT, 7, 14, "the result");
}

static void transfer(case_run *run, const void *parameters)
{
    uint32_t words[1001];
    hal_buffer *x = words_create(run, run->queue, 1001, 3, 5);
    hal_queue *other = case_queue(run, run->device);
    hal_buffer *y = words_create(run, other, 1001, 0, 0);
    case_ok(run, hal_queue_transfer(run->queue, x, 40, other, y, 80, 400), "transfer");
    case_ok(run, hal_queue_read(other, y, 0, sizeof words, words), "read");
    for (uint32_t i = 0; i < 1001; i++) {
        const uint32_t expected = i >= 20 && i < 120 ? (i - 10) * 5 + 3 : 0;
        case_check(run, words[i] == expected, "word %u is %u instead of %u", i, words[i], expected);
    }
}

/* Destroying a queue finishes what was recorded on it. */
static void destroy_with_work(case_run *run, const void *parameters)
{
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, 5000, 1, 1);
    hal_buffer *y = words_create(run, run->queue, 5000, 0, 0);
    hal_queue *other = NULL;
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_ok(run, hal_queue_create(run->device, &other), "hal_queue_create");
    case_check(run, hal_queue_get_device(other) == run->device, "the queue has another device");
    scale_dispatch(run, other, kernel, x, y, 5000, 6, 2);
    hal_queue_destroy(other);
    words_check(run, run->queue, y, 5000, 8, 6, "after the queue was destroyed");
}

static void nulls(case_run *run, const void *parameters)
{
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT;
    hal_queue *queue;
    hal_point point;
    hal_queue_destroy(NULL);
    case_check(run, !hal_queue_get_device(NULL), "a null queue has a device");
    case_expect(run, hal_queue_create(NULL, &queue), wrong, NULL, "a queue of a null device");
    case_expect(run, hal_queue_create(run->device, NULL), wrong, NULL, "a null result");
    case_expect(run, hal_queue_flush(NULL, &point), wrong, NULL, "flush of a null queue");
    case_expect(run, hal_queue_wait(NULL, 0), wrong, NULL, "wait for a null queue");
    case_expect(run, hal_queue_fill(NULL, (hal_range){NULL, 0, 4}, 0), wrong, NULL,
                "fill on a null queue");
}

/* ---- Each kind of command after each other one ---- */

typedef enum step_kind { STEP_FILL, STEP_COPY, STEP_ROWS, STEP_KERNEL, STEP_KINDS } step_kind;

enum { STEP_BUFFERS = 4, STEP_WORDS = 96, STEP_ROW = 8 };

/* Buffers whose words are all equal, and the values that they should have. */
typedef struct step_state {
    hal_kernel *kernel;
    hal_buffer *buffers[STEP_BUFFERS];
    uint32_t values[STEP_BUFFERS];
} step_state;

/* Rows have gaps, or they would be a copy: every second row is copied, with the first words. */
static void step_record(case_run *run, step_state *state, step_kind kind, uint32_t from,
                        uint32_t to)
{
    const uint32_t filled = 70 + from;
    const hal_range source = range_of(state->buffers[from]), target = range_of(state->buffers[to]);
    const hal_row_copy rows = {.source = source.buffer,
                               .target = target.buffer,
                               .source_pitch = 8 * STEP_ROW,
                               .target_pitch = 8 * STEP_ROW,
                               .row_bytes = 4 * STEP_ROW,
                               .rows = STEP_WORDS / STEP_ROW / 2,
                               .slices = 1};
    const uint32_t read = state->values[from];
    switch (kind) {
    case STEP_FILL:
        case_ok(run, hal_queue_fill(run->queue, target, filled), "hal_queue_fill");
        break;
    case STEP_COPY:
        case_ok(run, hal_queue_copy(run->queue, source, target), "hal_queue_copy");
        break;
    case STEP_ROWS:
        case_ok(run, hal_queue_copy_rows(run->queue, &rows), "hal_queue_copy_rows");
        break;
    default:
        scale_dispatch(run, run->queue, state->kernel, source.buffer, target.buffer, STEP_WORDS, 3,
                       5);
    }
    state->values[to] = kind == STEP_FILL ? filled : kind == STEP_KERNEL ? 3 * read + 5 : read;
}

/* Two commands in a batch of their own. */
static void step_pair(case_run *run, step_state *state, const step_kind kinds[2],
                      const uint32_t froms[2], const uint32_t tos[2])
{
    static const char *const names[STEP_KINDS] = {"fill", "copy", "copy of rows", "kernel"};
    char text[96];
    for (uint32_t i = 0; i < STEP_BUFFERS; i++) {
        state->values[i] = i + 1;
        case_ok(run, hal_queue_fill(run->queue, range_of(state->buffers[i]), i + 1),
                "hal_queue_fill");
    }
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    for (int i = 0; i < 2; i++) {
        step_record(run, state, kinds[i], froms[i], tos[i]);
    }
    for (uint32_t i = 0; i < STEP_BUFFERS; i++) {
        snprintf(text, sizeof text, "a %s, then a %s: buffer %u", names[kinds[0]], names[kinds[1]],
                 i);
        words_check(run, run->queue, state->buffers[i], STEP_ROW, state->values[i], 0, text);
    }
}

/* The second one reads what the first one wrote, overwrites what it read, or what it wrote. */
static void each_after_each(case_run *run, const void *parameters)
{
    step_state state = {.kernel = scale_kernel(run, run->device)};
    for (uint32_t i = 0; i < STEP_BUFFERS; i++) {
        state.buffers[i] = words_create(run, run->queue, STEP_WORDS, 0, 0);
    }
    for (uint32_t pair = 0; pair < STEP_KINDS * STEP_KINDS; pair++) {
        const step_kind kinds[2] = {pair / STEP_KINDS, pair % STEP_KINDS};
        step_pair(run, &state, kinds, (uint32_t[2]){0, 1}, (uint32_t[2]){1, 2});
        step_pair(run, &state, kinds, (uint32_t[2]){0, 3}, (uint32_t[2]){1, 0});
        step_pair(run, &state, kinds, (uint32_t[2]){0, 3}, (uint32_t[2]){1, 1});
    }
}

/* Each of many queues waits for the one before it, and the first one works for long. */
static void deep_waits(case_run *run, const void *parameters)
{
    enum { QUEUES = 40, LONG = 50, SHORT = 4, COUNT = 1 << 14 };
    hal_queue *queues[QUEUES];
    hal_buffer *results[QUEUES + 1];
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, COUNT, 1, 1);
    hal_buffer *y = words_create(run, run->queue, COUNT, 0, 0);
    for (int i = 0; i <= QUEUES; i++) {
        results[i] = words_create(run, run->queue, 1, i == 0 ? 7 : 1000, 0);
    }
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    for (int i = 0; i < QUEUES; i++) {
        hal_point point = {0};
        queues[i] = case_queue(run, run->device);
        if (i > 0) {
            case_ok(run, hal_queue_flush(queues[i - 1], &point), "hal_queue_flush");
            case_ok(run, hal_queue_wait_point(queues[i], point), "hal_queue_wait_point");
        }
        for (int k = 0; k < LONG && i == 0; k++) {
            scale_dispatch(run, queues[i], kernel, x, y, COUNT, 3, 1);
        }
        for (int k = 0; k < SHORT; k++) { /* the same again */
            scale_dispatch(run, queues[i], kernel, results[i], results[i + 1], 1, 1, 2);
        }
    }
    words_check(run, queues[QUEUES - 1], results[QUEUES], 1, 7 + 2 * QUEUES, 0,
                "the result of a chain of 40 queues");
}

void cases_hal_queue(case_list *list)
{
    static const uint32_t lengths[] = {
        1, 2, 100, HAL_QUEUE_BATCH_COMMANDS - 1, HAL_QUEUE_BATCH_COMMANDS, 2500};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        case_add_member(list, &chains, &(sequence_case){.commands = lengths[i]});
    }
    for (uint32_t i = 0; i < 8; i++) {
        case_add_member(list, &random_orders, &(sequence_case){.turn = i, .commands = 400});
    }
    case_add(list, each_after_each, NULL, 0, "queue/each_after_each");
    case_add(list, source_overwritten, NULL, 0, "queue/write_after_read");
    case_add(list, written_data_is_copied, NULL, 0, "queue/write_copies_its_data");
    case_add(list, partial_writes, NULL, 0, "queue/write_parts_of_any_size");
    case_add(list, long_writes, NULL, 0, "queue/long_writes_and_reads");
    case_add(list, many_writes, NULL, 0, "queue/writes_are_seen_behind_them");
    case_add(list, fill_to_end, NULL, 0, "queue/fill_and_copy_to_the_end");
    case_add(list, copy_of_any_bytes, NULL, 0, "queue/copy_of_any_bytes");
    case_add(list, long_copies, NULL, 0, "queue/long_copies_of_any_bytes");
    case_add(list, deep_waits, NULL, 0, "queue/waits_of_waits");
    case_add(list, unwritten_bytes, NULL, 0, "queue/unwritten_bytes");
    case_add(list, own_bindings, NULL, 0, "queue/own_bindings");
    case_add(list, zero_grid, NULL, 0, "queue/grid_of_zero");
    case_add(list, large_grid, NULL, 0, "queue/grid_of_65535");
    case_add(list, transfer, NULL, 0, "queue/transfer");
    case_add(list, destroy_with_work, NULL, 0, "queue/destroy_with_work");
    case_add(list, nulls, NULL, 0, "queue/nulls");
}

/* widths.c: numbers that cross the plugin's table, at each power of two up to what the device
 * claims: offsets, lengths, indices, the places of a command's bindings and scalars. Only some
 * words of each place are touched: memory that comes with the first touch is hardly taken. */
#include <hal/hal.h>
#include <stdio.h>
#include <string.h>

#include "case/cases.h"
#include "case/child.h"
#include "hal/fixture.h"

enum { FIRST_POWER = 8, MOST_POWERS = 40 };

static void release_and_trim(void *object)
{
    hal_buffer *buffer = object;
    hal_device *device = hal_buffer_get_device(buffer);
    hal_buffer_release(buffer);
    hal_device_trim(device);
}

/* A buffer of half of the largest allocation, or of half of the free memory where that is less:
 * that much a device has. */
static hal_buffer *half_of_most(case_run *run, uint64_t most, uint64_t *bytes)
{
    hal_memory_statistics memory = {0};
    hal_buffer *buffer = NULL;
    case_ok(run, hal_device_trim(run->device), "hal_device_trim");
    case_ok(run, hal_device_get_memory(run->device, &memory), "hal_device_get_memory");
    *bytes = most / 2;
    *bytes = *bytes < memory.free_bytes / 2 ? *bytes : memory.free_bytes / 2;
    *bytes -= *bytes % 4096;
    const hal_status status = hal_buffer_create(run->device, HAL_MEMORY_DEVICE, *bytes, &buffer);
    case_check(run, status == HAL_OK,
               "%llu bytes, half of what is claimed and of what is free, cannot be allocated: %s",
               (unsigned long long)*bytes, hal_status_message());
    case_own(run, release_and_trim, buffer);
    return buffer;
}

/* out[base] = value */
static hal_kernel *word_kernel(case_run *run)
{
    hal_ir_builder *b = case_builder(run, "word");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    const hal_ir_value base = hal_ir_scalar_value(b, "base", HAL_TYPE_U32);
    hal_ir_store(b, out, base, hal_ir_scalar_value(b, "value", HAL_TYPE_U32));
    return case_kernel(run, b);
}

static void word_dispatch(case_run *run, hal_kernel *kernel, hal_range range, uint32_t base,
                          uint32_t value)
{
    const uint32_t grid[3] = {1, 1, 1}, scalars[2] = {base, value};
    case_ok(run, hal_queue_dispatch(run->queue, kernel, grid, &range, 1, scalars, sizeof scalars),
            "hal_queue_dispatch");
}

static void word_check(case_run *run, hal_buffer *buffer, uint64_t offset, uint32_t expected,
                       const char *what)
{
    uint32_t word = 0;
    case_ok(run, hal_queue_read(run->queue, buffer, offset, sizeof word, &word), "hal_queue_read");
    case_check(run, word == expected, "the word at %llu, where %s, is 0x%x instead of 0x%x",
               (unsigned long long)offset, what, word, expected);
}

static bool has_fill_patterns(const case_run *run)
{
    return (run->info->features & HAL_FEATURE_FILL_PATTERNS) != 0;
}

/* Fills of a pattern of each size, in whole and odd numbers of patterns; neighbours stay. */
static void patterns(case_run *run, const void *parameters)
{
    enum { BYTES = 4096, BEFORE = 0x11 };
    static const uint32_t sizes[] = {1, 2, 4, 8, 16};
    uint8_t pattern[16], got[BYTES];
    if (!has_fill_patterns(run)) {
        case_unsupported(run, "the device fills with patterns of 4 bytes only");
    }
    for (uint32_t i = 0; i < 16; i++) {
        pattern[i] = (uint8_t)(0x21 + 13 * i);
    }
    hal_buffer *buffer = NULL;
    case_ok(run, hal_buffer_create(run->device, HAL_MEMORY_DEVICE, BYTES, &buffer),
            "hal_buffer_create");
    case_own(run, release_and_trim, buffer);
    for (uint32_t i = 0; i < 5; i++) {
        const uint32_t size = sizes[i], first = 7 * size, length = 33 * size;
        case_ok(run,
                hal_queue_fill(run->queue, (hal_range){buffer, 0, BYTES}, 0x01010101u * BEFORE),
                "hal_queue_fill");
        case_ok(
            run,
            hal_queue_fill_pattern(run->queue, (hal_range){buffer, first, length}, pattern, size),
            "hal_queue_fill_pattern");
        case_ok(run, hal_queue_read(run->queue, buffer, 0, BYTES, got), "hal_queue_read");
        for (uint32_t k = 0; k < BYTES; k++) {
            const bool is_filled = k >= first && k < first + length;
            const uint32_t expected = is_filled ? pattern[(k - first) % size] : BEFORE;
            case_check(run, got[k] == expected,
                       "byte %u after a fill of %u patterns of %u bytes at %u is 0x%x instead of "
                       "0x%x",
                       k, length / size, size, first, got[k], expected);
        }
    }
}

enum { OPERANDS = 8 }; /* the fewest bindings that a device may have */

/* The last one is the sum of the others. */
static hal_kernel *operands_kernel(case_run *run)
{
    hal_ir_builder *b = case_builder(run, "sum");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_value zero = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    hal_ir_value sum = hal_ir_u32(b, 0);
    for (uint32_t k = 0; k + 1 < OPERANDS; k++) {
        const char name[] = {(char)('a' + k), 0};
        const hal_ir_memory_id x = hal_ir_binding(b, name, HAL_TYPE_U32, HAL_ACCESS_READ);
        sum = hal_ir_add(b, sum, hal_ir_load(b, x, zero));
    }
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_WRITE);
    hal_ir_store(b, out, zero, sum);
    return case_kernel(run, b);
}

/* Bindings of a kernel, of which each is the far one in its turn. */
static void far_operands(case_run *run, hal_buffer *buffer, uint64_t far, uint32_t step)
{
    hal_kernel *kernel = operands_kernel(run);
    const uint32_t grid[3] = {1, 1, 1};
    for (uint32_t turn = 0; turn < OPERANDS; turn++) {
        hal_range ranges[OPERANDS];
        for (uint32_t k = 0; k < OPERANDS; k++) {
            const uint64_t at = (k == turn ? far : 0) + (uint64_t)step * (k + 1);
            ranges[k] = (hal_range){buffer, at, 4};
            case_ok(run, hal_queue_fill(run->queue, ranges[k], 100 * (turn + 1) + k),
                    "hal_queue_fill");
        }
        case_ok(run, hal_queue_dispatch(run->queue, kernel, grid, ranges, OPERANDS, NULL, 0),
                "hal_queue_dispatch");
        word_check(run, buffer, ranges[OPERANDS - 1].offset,
                   100 * (turn + 1) * (OPERANDS - 1) + (OPERANDS - 1) * (OPERANDS - 2) / 2,
                   "a kernel has added the others");
    }
}

/* Rows from one place to another, and a kernel whose grid is at a place. */
static void far_commands(case_run *run, hal_kernel *kernel, hal_buffer *buffer, uint64_t at,
                         hal_range result)
{
    enum { SOURCE = 64, ROWS = 160, GRID = 192, PITCH = 16 };
    const uint32_t most[3] = {1, 1, 1}, scalars[2] = {0, (uint32_t)at};
    const hal_row_copy rows = {.source = buffer,
                               .target = buffer,
                               .source_offset = at + SOURCE,
                               .target_offset = at + ROWS,
                               .source_pitch = PITCH,
                               .target_pitch = PITCH,
                               .row_bytes = 4,
                               .rows = 2,
                               .slices = 1};
    case_ok(run, hal_queue_copy_rows(run->queue, &rows), "hal_queue_copy_rows");
    if ((run->info->features & HAL_FEATURE_INDIRECT) != 0) {
        const hal_range grid = {buffer, at + GRID, 12};
        case_ok(run, hal_queue_fill(run->queue, grid, 1), "hal_queue_fill");
        case_ok(run,
                hal_queue_dispatch_indirect(run->queue, kernel, grid, most, &result, 1, scalars,
                                            sizeof scalars),
                "hal_queue_dispatch_indirect");
    }
}

/* Fills with a pattern of each other size, at places next to those of `offsets`. */
enum { WIDE_COUNT = 3 };
static const uint32_t wide_patterns_at[WIDE_COUNT] = {84, 88, 96}, wide_sizes[] = {2, 8, 16};

static uint32_t wide_pattern_word(uint32_t i, uint32_t tag)
{
    return (0x7700 + 0x30 * (i + 1) + tag) * 0x00010001u;
}

static void wide_patterns(case_run *run, hal_buffer *buffer, uint64_t at, uint32_t tag)
{
    for (uint32_t i = 0; i < WIDE_COUNT; i++) {
        const uint32_t word = wide_pattern_word(i, tag);
        const uint32_t pattern[4] = {word, ~word, word + 1, ~word + 1}; /* of no shorter pattern */
        const uint64_t bytes = wide_sizes[i] < 4 ? 4 : wide_sizes[i];
        case_ok(run,
                hal_queue_fill_pattern(run->queue,
                                       (hal_range){buffer, at + wide_patterns_at[i], bytes},
                                       pattern, wide_sizes[i]),
                "hal_queue_fill_pattern");
    }
}

/* At each power of two a kernel's binding, a fill, a copy's source and its target. A width that is
 * too small puts one of them near the beginning, and its word is not there. */
static void offsets(case_run *run, const void *parameters)
{
    enum { FILLED = 64, BYTES = 80, COPIED = 128, ROWS = 160, FIRST_BYTE = 0x20 };
    enum { TAG = 0x5a000000, FILL_TAG = 0x33000000 };
    uint64_t bytes = 0;
    hal_kernel *kernel = word_kernel(run);
    hal_buffer *buffer = half_of_most(run, run->info->max_allocation, &bytes);
    hal_buffer *results = words_create(run, run->queue, 64 * MOST_POWERS, 0, 0);
    const uint32_t step = run->info->binding_alignment > 256 ? run->info->binding_alignment : 256;
    uint32_t first = FIRST_POWER, end = first;
    while (UINT64_C(1) << first < step) {
        first++;
    }
    for (uint32_t k = first; k < MOST_POWERS && (UINT64_C(1) << k) + 5 * step < bytes; k++) {
        const uint64_t at = UINT64_C(1) << k;
        word_dispatch(run, kernel, (hal_range){buffer, at, 4}, 0, TAG + k);
        case_ok(run, hal_queue_fill(run->queue, (hal_range){buffer, at + FILLED, 4}, FILL_TAG + k),
                "hal_queue_fill");
        if (has_fill_patterns(run)) { /* the same word byte by byte, and others in one go */
            case_ok(run,
                    hal_queue_fill_pattern(run->queue, (hal_range){buffer, at + BYTES, 4},
                                           &(uint8_t){FIRST_BYTE + k}, 1),
                    "hal_queue_fill_pattern");
            wide_patterns(run, buffer, at, FIRST_BYTE + k);
        }
        case_ok(run,
                hal_queue_copy(run->queue, (hal_range){buffer, at, 4},
                               (hal_range){buffer, at + COPIED, 4}),
                "hal_queue_copy");
        far_commands(run, kernel, buffer, at, (hal_range){results, 256ull * k, 4});
        end = k + 1;
    }
    for (uint32_t k = first; k < end; k++) {
        const uint64_t at = UINT64_C(1) << k;
        word_check(run, buffer, at, TAG + k, "a kernel's binding begins");
        word_check(run, buffer, at + FILLED, FILL_TAG + k, "a fill begins");
        word_check(run, buffer, at + COPIED, TAG + k, "a copy's target begins");
        word_check(run, buffer, at + ROWS, FILL_TAG + k, "the target of rows begins");
        if ((run->info->features & HAL_FEATURE_INDIRECT) != 0) {
            word_check(run, results, 256ull * k, (uint32_t)at, "a kernel with a far grid writes");
        }
        if (has_fill_patterns(run)) {
            word_check(run, buffer, at + BYTES, (FIRST_BYTE + k) * 0x01010101u,
                       "a fill of bytes begins");
            for (uint32_t i = 0; i < WIDE_COUNT; i++) {
                word_check(run, buffer, at + wide_patterns_at[i],
                           wide_pattern_word(i, FIRST_BYTE + k),
                           "a fill with a pattern of 2, 8 or 16 bytes begins");
            }
        }
    }
    far_operands(run, buffer, UINT64_C(1) << (end - 1), step);
    const uint64_t last = bytes - step;
    word_dispatch(run, kernel, (hal_range){buffer, last, step}, step / 4 - 1, TAG);
    word_check(run, buffer, bytes - 4, TAG, "the memory ends");
}

/* Elements at each power of two of one binding of the whole buffer. */
static void indices(case_run *run, const void *parameters)
{
    enum { TAG = 0x3c000000 };
    uint64_t bytes = 0;
    hal_kernel *kernel = word_kernel(run);
    hal_buffer *buffer = half_of_most(run, run->info->max_binding, &bytes);
    const uint64_t most = (UINT64_C(1) << 34) - 4; /* an index is an u32 */
    bytes = bytes < most ? bytes : most;
    const hal_range whole = {buffer, 0, bytes};
    for (uint32_t k = FIRST_POWER; UINT64_C(1) << k < bytes; k++) {
        word_dispatch(run, kernel, whole, (uint32_t)((UINT64_C(1) << k) / 4), TAG + k);
    }
    word_dispatch(run, kernel, whole, (uint32_t)(bytes / 4 - 1), TAG);
    for (uint32_t k = FIRST_POWER; UINT64_C(1) << k < bytes; k++) {
        word_check(run, buffer, UINT64_C(1) << k, TAG + k, "a kernel's element is");
    }
    word_check(run, buffer, bytes - 4, TAG, "a kernel's last element is");
}

/* Elements by the offset in the instruction, at each power of two in one kernel. */
static void immediates(case_run *run, const void *parameters)
{
    enum { LEAST = 4, MOST = 30, TAG = 0x6d000000 };
    uint64_t bytes = 0;
    hal_buffer *buffer = half_of_most(run, run->info->max_binding, &bytes);
    const hal_range whole = {buffer, 0, bytes};
    hal_ir_builder *b = case_builder(run, "immediates");
    hal_ir_group_size(b, 1, 1, 1);
    const hal_ir_memory_id out = hal_ir_binding(b, "out", HAL_TYPE_U32, HAL_ACCESS_READ_WRITE);
    const hal_ir_value zero = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    uint32_t end = LEAST;
    for (; end <= MOST && (UINT64_C(4) << end) + 8 <= bytes; end++) {
        hal_ir_store_wide(b, out, zero, 1 << end, HAL_IR_NONE, hal_ir_u32(b, TAG + end));
    }
    for (uint32_t k = LEAST; k < end; k++) { /* the next word has what a load sees */
        const hal_ir_value seen = hal_ir_load_wide(b, out, zero, 1 << k, 1, HAL_IR_NONE);
        hal_ir_store_wide(b, out, zero, (1 << k) + 1, HAL_IR_NONE,
                          hal_ir_add(b, seen, hal_ir_u32(b, 0x100)));
    }
    hal_kernel *kernel = case_kernel(run, b);
    const uint32_t grid[3] = {1, 1, 1};
    case_ok(run, hal_queue_dispatch(run->queue, kernel, grid, &whole, 1, NULL, 0),
            "hal_queue_dispatch");
    for (uint32_t k = LEAST; k < end; k++) {
        const uint64_t at = UINT64_C(4) << k;
        word_check(run, buffer, at, TAG + k, "a store by its offset is");
        word_check(run, buffer, at + 4, TAG + k + 0x100, "a load by its offset sees");
    }
}

/* Fills of bytes and of 16 bytes are as long as they are asked to be. */
static void pattern_lengths(case_run *run, const void *parameters)
{
    static const uint32_t sizes[] = {1, 2, 8, 16};
    enum { LEAST = 12, MOST = 24 };
    const uint64_t side = (UINT64_C(1) << MOST) + 4096;
    uint8_t pattern[16], got[16];
    hal_buffer *buffer = NULL;
    if (!has_fill_patterns(run)) {
        case_unsupported(run, "the device fills with patterns of 4 bytes only");
    }
    case_ok(run, hal_buffer_create(run->device, HAL_MEMORY_DEVICE, side, &buffer),
            "hal_buffer_create");
    case_own(run, release_and_trim, buffer);
    for (uint32_t k = LEAST; k <= MOST; k += 2) {
        for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            const uint32_t size = sizes[i];
            const uint64_t first = 3 * size, length = (UINT64_C(1) << k) + size;
            for (uint32_t n = 0; n < 16; n++) {
                pattern[n] = (uint8_t)(1 + k + 16 * i + 37 * n);
            }
            case_ok(run,
                    hal_queue_fill_pattern(run->queue, (hal_range){buffer, first, length}, pattern,
                                           size),
                    "hal_queue_fill_pattern");
            case_ok(run, hal_queue_read(run->queue, buffer, first + length - size, size, got),
                    "hal_queue_read");
            case_check(run, memcmp(got, pattern, size) == 0,
                       "a fill of %llu bytes with a pattern of %u does not reach its end",
                       (unsigned long long)length, size);
        }
    }
}

/* Fills and copies of one word more than each power of two, the last word of each of which is
 * looked at; longer ones where the device is quick and has the memory. */
static void lengths(case_run *run, const void *parameters)
{
    enum { LEAST = 12, MOST = 27, MOST_OF_QUICK = 32, LAST = 1 << MOST };
    const double quick = 0.06; /* seconds */
    hal_memory_statistics memory = {0};
    case_ok(run, hal_device_get_memory(run->device, &memory), "hal_device_get_memory");
    const uint64_t side = (uint64_t)LAST + 4096;
    if (memory.free_bytes < 8 * side || run->info->max_allocation < 2 * side) {
        case_unsupported(run, "the device has %llu bytes free, and allocations of at most %llu",
                         (unsigned long long)memory.free_bytes,
                         (unsigned long long)run->info->max_allocation);
    }
    hal_buffer *buffer = NULL;
    case_ok(run, hal_buffer_create(run->device, HAL_MEMORY_DEVICE, 2 * side, &buffer),
            "hal_buffer_create");
    case_own(run, release_and_trim, buffer);
    double last = 0;
    for (uint32_t k = LEAST; k <= MOST; k++) {
        const double begin = child_now();
        const uint64_t length = (UINT64_C(1) << k) + 4;
        const hal_range from = {buffer, 0, length}, to = {buffer, side, length};
        case_ok(run, hal_queue_fill(run->queue, from, 0x01000000 + k), "hal_queue_fill");
        case_ok(run, hal_queue_copy(run->queue, from, to), "hal_queue_copy");
        word_check(run, buffer, length - 4, 0x01000000 + k, "a long fill ends");
        word_check(run, buffer, side + length - 4, 0x01000000 + k, "a long copy ends");
        last = child_now() - begin;
    }
    for (uint32_t k = MOST + 1; k <= MOST_OF_QUICK && last < quick; k++) {
        const double begin = child_now();
        const uint64_t length = (UINT64_C(1) << k) + 4;
        if (memory.free_bytes < 8 * length || run->info->max_allocation < length) {
            break;
        }
        const size_t objects = run->object_count;
        case_ok(run, hal_buffer_create(run->device, HAL_MEMORY_DEVICE, length, &buffer),
                "hal_buffer_create");
        case_own(run, release_and_trim, buffer);
        case_ok(run, hal_queue_fill(run->queue, (hal_range){buffer, 0, length}, 0x01000000 + k),
                "hal_queue_fill");
        word_check(run, buffer, length - 4, 0x01000000 + k, "a long fill ends");
        case_release(run, objects);
        last = child_now() - begin;
    }
}

enum { SCALARS = HAL_IR_MAX_SCALAR_BYTES / 4, PLACES = 3 };
static const uint32_t places[PLACES] = {0, SCALARS / 2, SCALARS - 1};

/* out[0] = the sum of the first word of each binding and of three scalars. */
static hal_kernel *sum_kernel(case_run *run, uint32_t bindings)
{
    hal_ir_memory_id x[HAL_IR_MAX_BINDINGS];
    hal_ir_builder *b = case_builder(run, "sum");
    hal_ir_group_size(b, 1, 1, 1);
    for (uint32_t i = 0; i < bindings; i++) {
        char name[8] = {'x', (char)('a' + i), 0};
        x[i] = hal_ir_binding(b, name, HAL_TYPE_U32,
                              i + 1 < bindings ? HAL_ACCESS_READ : HAL_ACCESS_WRITE);
    }
    const hal_ir_value zero = hal_ir_id(b, HAL_IR_LOCAL_ID, 0);
    hal_ir_value sum = hal_ir_u32(b, 0);
    for (uint32_t i = 0, next = 0; i < SCALARS; i++) {
        char name[8];
        snprintf(name, sizeof name, "s%u", i);
        const hal_ir_value scalar = hal_ir_scalar_value(b, name, HAL_TYPE_U32);
        if (next < PLACES && i == places[next]) {
            sum = hal_ir_add(b, sum, scalar);
            next++;
        }
    }
    for (uint32_t i = 0; i + 1 < bindings; i++) {
        const hal_ir_value factor = hal_ir_u32(b, i + 1);
        sum = hal_ir_add(b, sum, hal_ir_mul(b, hal_ir_load(b, x[i], zero), factor));
    }
    hal_ir_store(b, x[bindings - 1], zero, sum);
    return case_kernel(run, b);
}

/* A batch of the greatest length, each of whose commands has all bindings and all scalars. */
static void batch_arrays(case_run *run, const void *parameters)
{
    enum { COMMANDS = HAL_QUEUE_BATCH_COMMANDS - 1 };
    const uint32_t bindings = run->info->max_bindings,
                   words = run->info->binding_alignment > 4 ? run->info->binding_alignment / 4 : 1;
    const uint32_t grid[3] = {1, 1, 1};
    hal_kernel *kernel = sum_kernel(run, bindings);
    hal_buffer *x = words_create(run, run->queue, COMMANDS * words, 7, 1);
    hal_buffer *out = words_create(run, run->queue, COMMANDS * words, 0, 0);
    uint32_t *seen = case_allocate(run, COMMANDS * words, sizeof *seen);
    uint32_t scalars[SCALARS] = {0};
    hal_range ranges[HAL_IR_MAX_BINDINGS];
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_ok(run, hal_queue_set_batch(run->queue, COMMANDS, COMMANDS), "hal_queue_set_batch");
    for (uint32_t i = 0; i < COMMANDS; i++) {
        for (uint32_t k = 0; k < bindings; k++) {
            const uint32_t place = k + 1 < bindings ? (i + k) % COMMANDS : i;
            ranges[k] = (hal_range){k + 1 < bindings ? x : out, 4ull * place * words, 4};
        }
        for (uint32_t k = 0; k < PLACES; k++) {
            scalars[places[k]] = i * (1000 + k);
        }
        case_ok(
            run,
            hal_queue_dispatch(run->queue, kernel, grid, ranges, bindings, scalars, sizeof scalars),
            "hal_queue_dispatch");
    }
    case_ok(run, hal_queue_read(run->queue, out, 0, 4ull * COMMANDS * words, seen), "read");
    case_ok(run, hal_queue_set_batch(run->queue, 0, 0), "hal_queue_set_batch");
    for (uint32_t i = 0; i < COMMANDS; i++) {
        uint32_t expected = 0;
        for (uint32_t k = 0; k < PLACES; k++) {
            expected += i * (1000 + k);
        }
        for (uint32_t k = 0; k + 1 < bindings; k++) {
            expected += (7 + (i + k) % COMMANDS * words) * (k + 1);
        }
        case_check(run, seen[i * words] == expected,
                   "command %u of %d with %u bindings and %u bytes of scalars wrote %u instead of "
                   "%u",
                   i, COMMANDS, bindings, (uint32_t)sizeof scalars, seen[i * words], expected);
    }
}

void cases_hal_widths(case_list *list)
{
    case_add(list, patterns, NULL, 0, "widths/patterns");
    case_add(list, offsets, NULL, 0, "widths/offsets");
    case_add(list, indices, NULL, 0, "widths/indices");
    case_add(list, immediates, NULL, 0, "widths/immediates");
    case_add(list, pattern_lengths, NULL, 0, "widths/pattern_lengths");
    case_add(list, lengths, NULL, 0, "widths/lengths");
    case_add(list, batch_arrays, NULL, 0, "widths/batch_arrays");
}

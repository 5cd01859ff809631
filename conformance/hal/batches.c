/* batches.c: batches, waits and openings of the device without hal in between: as many commands as
 * a batch may have and as many batches in flight as there are, limits of waits of every width, and
 * several devices at once. */
#include <hal/plugin.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "case/cases.h"
#include "case/child.h"
#include "hal/direct.h"
#include "hal/fixture.h"

/* A batch of fills with 1, 2, ... of one word each, from the first word on and again. */
typedef struct fills {
    uint32_t count;
    hal_command *commands;
    hal_binding *bindings;
    uint32_t *scalars; /* two words of each */
} fills;

static fills fills_make(case_run *run, const direct *d, uint32_t count)
{
    fills made = {.count = count,
                  .commands = case_allocate(run, count, sizeof *made.commands),
                  .bindings = case_allocate(run, count, sizeof *made.bindings),
                  .scalars = case_allocate(run, count, 8)};
    for (uint32_t i = 0; i < count; i++) {
        made.scalars[2 * (size_t)i] = i + 1;
        made.bindings[i] = (hal_binding){.memory = d->memory,
                                         .offset = 4 * (i % DIRECT_WORDS),
                                         .length = 4,
                                         .access = HAL_ACCESS_WRITE};
        made.commands[i] = (hal_command){.kind = HAL_COMMAND_FILL,
                                         .flags = i % DIRECT_WORDS == 0 ? HAL_COMMAND_BARRIER : 0,
                                         .binding_count = 1,
                                         .scalar_bytes = 4,
                                         .binding_first = i,
                                         .scalar_first = 8 * i,
                                         .grid = {1, 1, 1}};
    }
    return made;
}

/* Submits `count` of the commands, from number `first` on, to queue 0. */
static void fills_submit(case_run *run, direct *d, const fills *made, uint32_t first,
                         uint32_t count)
{
    const hal_batch none = {.size = sizeof none};
    hal_command one = made->commands[first];
    one.binding_first = one.scalar_first = 0;
    const bool is_one = count == 1; /* then the arrays are those of one command */
    const hal_batch batch = {
        .size = sizeof batch,
        .command_count = count,
        .binding_count = is_one ? 1 : made->count,
        .scalar_bytes = is_one ? 8 : 8 * made->count,
        .commands = is_one ? &one : made->commands + first,
        .bindings = is_one ? made->bindings + first : made->bindings,
        .scalars = (const uint8_t *)(is_one ? made->scalars + 2 * (size_t)first : made->scalars)};
    const hal_status status =
        d->table->submit(d->queues[0], count > 0 ? &batch : &none, NULL, 0, d->submitted[0] + 1);
    case_check(run, status == HAL_OK, "a batch of %u commands: submit gave %s: %s", count,
               hal_status_name(status), d->message);
    d->submitted[0]++;
}

/* Waits for all batches; each word has the number of the last fill of it. */
static void fills_check(case_run *run, direct *d, uint32_t count, const char *what)
{
    case_ok(run, direct_wait(d, 0, DIRECT_LIMIT_NS), "wait");
    direct_see_words(run, d);
    for (uint32_t i = 0; i < DIRECT_WORDS; i++) {
        const uint32_t expected = i < count ? count - (count - 1 - i) % DIRECT_WORDS : 0;
        case_check(run, d->words[i] == expected || i >= count, "%s: word %u is %u instead of %u",
                   what, i, d->words[i], expected);
    }
}

/* Four times as many where the first batch takes little time. */
static void long_batch(case_run *run, const void *parameters)
{
    enum { COMMANDS = 70000, MORE = 270000 };
    const double most = 0.3; /* seconds */
    direct *d = direct_shared(run);
    const fills made = fills_make(run, d, MORE);
    const double begin = child_now();
    fills_submit(run, d, &made, 0, COMMANDS);
    fills_check(run, d, COMMANDS, "after a batch of 70,000 commands");
    if (child_now() - begin < most) {
        fills_submit(run, d, &made, 0, MORE);
        fills_check(run, d, MORE, "after a batch of 270,000 commands");
    }
}

/* Places of commands, bindings and scalars at each power of two: the arrays are as long, and only
 * some commands do something. */
static void far_places(case_run *run, const void *parameters)
{
    enum { FIRST = 8, BINDINGS = 20, SCALARS = 25, MOST = SCALARS - FIRST + 1 };
    const uint32_t binding_count = (1u << BINDINGS) + 1, scalar_bytes = (1u << SCALARS) + 8;
    direct *d = direct_shared(run);
    hal_binding *bindings = case_allocate(run, binding_count, sizeof *bindings);
    uint8_t *scalars = case_allocate(run, scalar_bytes, 1);
    hal_command commands[MOST];
    for (uint32_t i = 0; i < MOST; i++) {
        const uint32_t power = FIRST + i, number = 1000 + i;
        const uint32_t place = power <= BINDINGS ? 1u << power : i;
        bindings[place] = (hal_binding){d->memory, 4 * (uint64_t)i, 4, HAL_ACCESS_WRITE, 0};
        memcpy(scalars + (UINT64_C(1) << power), &number, sizeof number);
        commands[i] = (hal_command){.kind = HAL_COMMAND_FILL,
                                    .binding_count = 1,
                                    .scalar_bytes = 4,
                                    .binding_first = place,
                                    .scalar_first = 1u << power,
                                    .grid = {1, 1, 1}};
    }
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = MOST,
                             .binding_count = binding_count,
                             .scalar_bytes = scalar_bytes,
                             .commands = commands,
                             .bindings = bindings,
                             .scalars = scalars};
    case_ok(run, d->table->submit(d->queues[0], &batch, NULL, 0, ++d->submitted[0]), "submit");
    case_ok(run, direct_wait(d, 0, DIRECT_LIMIT_NS), "wait");
    direct_see_words(run, d);
    for (uint32_t i = 0; i < MOST; i++) {
        case_check(run, d->words[i] == 1000 + i,
                   "the command with scalars from byte 2^%u on filled with %u instead of %u",
                   FIRST + i, d->words[i], 1000 + i);
    }
}

/* Batches without commands are in the same order. */
static void many_in_flight(case_run *run, const void *parameters)
{
    enum { BATCHES = 6000, FIRST = 4000, COMMANDS = FIRST + BATCHES };
    direct *d = direct_shared(run);
    const fills made = fills_make(run, d, COMMANDS);
    fills_submit(run, d, &made, 0, FIRST);
    for (uint32_t i = 0; i < BATCHES; i++) {
        fills_submit(run, d, &made, FIRST + i, 1);
        if (i % 50 == 0) {
            fills_submit(run, d, &made, 0, 0);
        }
    }
    fills_check(run, d, COMMANDS, "after 6,000 batches in flight");
}

static uint64_t nanoseconds_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* A limit is 64 bits of nanoseconds, whatever the system's own waits take: none of these ends
 * before the work, which takes some milliseconds. */
static void limits_of_waits(case_run *run, const void *parameters)
{
    enum { COMMANDS = 8000 };
    static const uint64_t limits[] = {UINT64_C(1) << 32, /* nanoseconds in 32 bits */
                                      (UINT64_C(1) << 32) + 100,
                                      (UINT64_C(1) << 33) + 1,
                                      (UINT64_C(1) << 32) * 1000, /* microseconds */
                                      (UINT64_C(1) << 31) *
                                          1000000, /* milliseconds, as poll takes them */
                                      (UINT64_C(1) << 32) * 1000000,
                                      UINT64_C(1) << 53,
                                      (UINT64_C(1) << 31) * UINT64_C(1000000000), /* seconds */
                                      (UINT64_C(1) << 32) * UINT64_C(1000000000),
                                      UINT64_C(1) << 62,
                                      INT64_MAX - 1, /* from now on, beyond the end of a clock */
                                      INT64_MAX,
                                      UINT64_C(1) << 63,
                                      UINT64_MAX - 1,
                                      UINT64_MAX};
    direct *d = direct_shared(run);
    const fills made = fills_make(run, d, COMMANDS);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        fills_submit(run, d, &made, 0, COMMANDS);
        const uint64_t begin = nanoseconds_now();
        const hal_status status = direct_wait(d, 0, limits[i]);
        case_check(run,
                   status == HAL_OK ||
                       (status == HAL_ERROR_TIMEOUT && nanoseconds_now() - begin >= limits[i]),
                   "a wait of at most %llu ns gave %s after %llu us", (unsigned long long)limits[i],
                   hal_status_name(status), (unsigned long long)(nanoseconds_now() - begin) / 1000);
        case_ok(run, direct_wait(d, 0, UINT64_MAX), "wait");
    }
    fills_check(run, d, COMMANDS, "after waits");
}

/* ---- What hal passes in other forms ---- */

/* Rows as the command has them: with one row in a slice the slices count, not the pitch. */
static void rows_as_given(case_run *run, const void *parameters)
{
    enum { SLICES = 3, WORDS = 2, FROM = 5, TO = 7, TARGET = 256, BEFORE = 9 };
    direct *d = direct_shared(run);
    const hal_plugin_copy_rows rows = {.row_bytes = 4 * WORDS,
                                       .source_pitch = 4 * WORDS,
                                       .target_pitch = 4 * WORDS,
                                       .source_slice = 4 * FROM,
                                       .target_slice = 4 * TO,
                                       .rows = 1,
                                       .slices = SLICES};
    const hal_binding bindings[2] = {
        {d->memory, 0, 4 * (FROM * (SLICES - 1) + WORDS), HAL_ACCESS_READ, 0},
        {d->memory, 4 * TARGET, 4 * (TO * (SLICES - 1) + WORDS), HAL_ACCESS_WRITE, 0}};
    uint64_t scalars[(sizeof rows + 7) / 8] = {0};
    const hal_command command = {.kind = HAL_COMMAND_COPY_ROWS,
                                 .flags = HAL_COMMAND_BARRIER,
                                 .binding_count = 2,
                                 .scalar_bytes = sizeof rows,
                                 .grid = {1, 1, 1}};
    const hal_batch batch = {.size = sizeof batch,
                             .command_count = 1,
                             .binding_count = 2,
                             .scalar_bytes = sizeof scalars,
                             .commands = &command,
                             .bindings = bindings,
                             .scalars = (const uint8_t *)scalars};
    if ((run->info->features & HAL_FEATURE_COPY_ROWS) == 0) {
        case_unsupported(run, "copies of rows");
    }
    memcpy(scalars, &rows, sizeof rows);
    case_ok(run, direct_submit(d, 0, BEFORE, DIRECT_FILL), "submit");
    for (uint32_t i = 0; i < FROM * SLICES; i++) {
        case_ok(run, direct_fill(d, 0, d->memory, 4ull * i, 4, 100 + i), "submit");
    }
    case_ok(run, d->table->submit(d->queues[0], &batch, NULL, 0, ++d->submitted[0]), "submit");
    case_ok(run, direct_wait(d, 0, DIRECT_LIMIT_NS), "wait");
    direct_see_words(run, d);
    for (uint32_t i = 0; i < TO * SLICES; i++) {
        const uint32_t expected = i % TO < WORDS ? 100 + i / TO * FROM + i % TO : BEFORE;
        case_check(run, d->words[TARGET + i] == expected, "word %u is %u instead of %u", i,
                   d->words[TARGET + i], expected);
    }
}

/* A batch without commands ends between its neighbours. */
static void times_of_empty(case_run *run, const void *parameters)
{
    enum { COMMANDS = 5000 };
    direct *d = direct_shared(run);
    uint64_t parts[2] = {0}, all = 0;
    if (!d->timing) {
        case_unsupported(run, "times of batches");
    }
    const fills made = fills_make(run, d, COMMANDS);
    for (uint32_t i = 0; i < 3; i++) {
        fills_submit(run, d, &made, 0, i == 1 ? 0 : COMMANDS);
    }
    case_ok(run, direct_wait(d, 0, DIRECT_LIMIT_NS), "wait");
    const uint64_t last = d->submitted[0];
    case_ok(run, d->timing->queue_elapsed(d->queues[0], last - 2, last, &all), "queue_elapsed");
    for (uint32_t i = 0; i < 2; i++) {
        case_ok(run, d->timing->queue_elapsed(d->queues[0], last - 2 + i, last - 1 + i, &parts[i]),
                "queue_elapsed");
    }
    const uint64_t sum = parts[0] + parts[1];
    case_check(run, (all > sum ? all - sum : sum - all) <= 1000 + all / 100,
               "%llu ns before and %llu after the end of an empty batch are %llu in all",
               (unsigned long long)parts[0], (unsigned long long)parts[1], (unsigned long long)all);
}

/* ---- Several devices at once ---- */

typedef struct opened {
    const hal_plugin *table;
    hal_plugin_device *device;
} opened;

static void close_opened(void *object)
{
    const opened *one = object;
    if (one->device) {
        one->table->device_close(one->device);
    }
}

/* The device is opened again and again, without a close, and each opening works. */
static void several_at_once(case_run *run, const void *parameters)
{
    enum { MOST = 20, OF_DRIVER = 3, MOST_SECONDS = 10 };
    const double begin = child_now();
    static opened made[MOST];
    direct *d = direct_host(run);
    direct_instance(run, d);
    case_own(run, direct_close_object, d);
    const uint32_t most = case_has_compiler(run) ? OF_DRIVER : MOST;
    uint32_t count = 0;
    for (; count < most && (count < OF_DRIVER || child_now() - begin < MOST_SECONDS); count++) {
        const uint32_t i = count;
        made[i] = (opened){d->table, NULL};
        const hal_status status =
            d->table->device_open(d->instance, run->info->id, &made[i].device);
        case_check(run, status == HAL_OK, "opening %u of the device at once gave %s: %s", i + 1,
                   hal_status_name(status), d->message);
        case_own(run, close_opened, &made[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        direct one = *d;
        one.device = made[i].device;
        case_ok(run, direct_make(&one), "memory and queues of one of several devices");
        hal_status status = direct_submit(&one, 1, 100 + i, DIRECT_FILL);
        status = status == HAL_OK ? direct_wait(&one, 1, DIRECT_LIMIT_NS) : status;
        if (status == HAL_OK) {
            direct_check_words(run, &one, 100 + i, "a fill on one of several devices");
        }
        direct_unmake(&one);
        case_ok(run, status, "a fill on one of several devices");
    }
}

static bool is_line(const char *text)
{
    const unsigned char *next = (const unsigned char *)text;
    while (*next >= ' ' && *next != 0x7f) {
        next++;
    }
    return *next == 0 && direct_is_utf8(text);
}

/* Records of the same devices in two calls and in two instances are the same. */
static void same_in_each_instance(case_run *run, const void *parameters)
{
    enum { MOST = 8, CALLS = 3 };
    static uint8_t records[CALLS][MOST * HAL_DEVICE_INFO_MAX_BYTES];
    direct *of[2] = {direct_host(run), direct_host(run)};
    for (int i = 0; i < 2; i++) {
        direct_instance(run, of[i]);
        case_own(run, direct_close_object, of[i]);
    }
    for (int i = 0; i < CALLS; i++) {
        uint32_t count = 0;
        memset(records[i], 0, sizeof records[i]);
        case_ok(run,
                of[i / 2]->table->enumerate(of[i / 2]->instance,
                                            (hal_device_info *)(void *)records[i], MOST, &count),
                "enumerate");
        size_t at = 0;
        for (uint32_t k = 0; k < count && k < MOST; k++) {
            hal_device_info first, now;
            memcpy(&first, records[0] + at, sizeof first);
            memcpy(&now, records[i] + at, sizeof now);
            const uint32_t size = first.size;
            now.memory_bytes = first.memory_bytes; /* a control group may change them */
            now.max_allocation = first.max_allocation;
            now.max_binding = first.max_binding;
            case_check(run,
                       is_line(now.name) && is_line(now.id) && is_line(now.driver) &&
                           is_line(now.architecture),
                       "device %u: a text of the record is not one line of UTF-8", k);
            for (size_t w = 0; w < sizeof now.reserved / sizeof now.reserved[0]; w++) {
                case_check(run, now.reserved[w] == 0, "device %u: a reserved field is %u", k,
                           now.reserved[w]);
            }
            case_check(run, now.size == size && memcmp(&first, &now, sizeof now) == 0,
                       "device %u is \"%s\" (%s) in one call of enumerate and \"%s\" (%s) in "
                       "another, or has other limits",
                       k, first.name, first.driver, now.name, now.driver);
            at += size;
        }
    }
}

void cases_hal_batches(case_list *list)
{
    case_add(list, long_batch, NULL, 0, "batches/commands(70000)");
    case_add(list, far_places, NULL, 0, "batches/far_places");
    case_add(list, many_in_flight, NULL, 0, "batches/in_flight(6000)");
    case_add(list, limits_of_waits, NULL, 0, "batches/limits_of_waits");
    case_add(list, rows_as_given, NULL, 0, "batches/rows_as_given");
    case_add(list, times_of_empty, NULL, 0, "batches/times_of_empty");
    case_add(list, several_at_once, NULL, 0, "device/several_at_once");
    case_add(list, same_in_each_instance, NULL, 0, "device/same_in_each_instance");
}

/* fresh.c: cases that begin in a process without a device: that devices are the same in each
 * process, that nothing is printed, that a compile cache on disk gives the same kernels, and what
 * happens when memory is exhausted. */
#include <hal/hal.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "case/cases.h"
#include "case/child.h"
#include "hal/fixture.h"
#include "hal/pairs.h"

/* ---- Devices are the same in each process ---- */

enum { LIST_BYTES = 16384, PROCESSES = 4, SECONDS = 50 };

static void numbers_print(char *list, size_t bytes, const uint32_t *numbers, uint32_t count)
{
    size_t used = 0;
    list[0] = 0;
    for (uint32_t i = 0; i < count && used < bytes; i++) {
        used += (size_t)snprintf(list + used, bytes - used, " %x", numbers[i]);
    }
}

/* All of a device's record but the memory, which a control group may change. */
static size_t record_print(char *list, size_t bytes, const hal_device_info *info)
{
    const uint32_t numbers[] = {info->kind,
                                info->binding_alignment,
                                info->compute_units,
                                info->subgroup_width,
                                info->max_group_items,
                                info->max_group_size[0],
                                info->max_group_size[1],
                                info->max_group_size[2],
                                info->max_grid[0],
                                info->max_grid[1],
                                info->max_grid[2],
                                info->shared_bytes,
                                info->max_bindings,
                                info->max_vector_bytes,
                                info->preferred_group,
                                info->storage_types,
                                info->arithmetic_types,
                                info->exactness,
                                info->features,
                                info->math_f32,
                                info->math_f64,
                                info->max_queues,
                                info->matrix_types,
                                info->item_vector_bytes,
                                info->item_register_bytes,
                                info->max_loop_iterations,
                                info->wrong_constants};
    char text[sizeof numbers / sizeof numbers[0] * 10];
    numbers_print(text, sizeof text, numbers, sizeof numbers / sizeof numbers[0]);
    const int used =
        snprintf(list, bytes, "id %s, name %s, driver %s, architecture %s, numbers%s; ", info->id,
                 info->name, info->driver, info->architecture, text);
    return used < 0 ? 0 : (size_t)used;
}

/* The records of the plugin's devices, in their order. */
static void list_devices(void *user, int fd)
{
    const char *selection = user;
    char list[LIST_BYTES] = "";
    size_t used = 0;
    const size_t name = strcspn(selection, ":");
    hal_registry_report *report = NULL;
    if (hal_registry_report_create(&report) != HAL_OK) {
        return;
    }
    for (uint32_t i = 0; i < report->plugin_count; i++) {
        const hal_plugin_report *plugin = &report->plugins[i];
        if (plugin->status != HAL_OK || strlen(plugin->name) != name ||
            strncmp(plugin->name, selection, name) != 0) {
            continue;
        }
        for (uint32_t k = 0; k < plugin->device_count && used < sizeof list; k++) {
            used += record_print(list + used, sizeof list - used, &plugin->devices[k]);
        }
    }
    hal_registry_report_destroy(report);
    child_write(fd, list, sizeof list);
}

/* The part of a list that differs from the other one, and some of what is before it. */
static const char *difference(const char *list, const char *other)
{
    enum { BEFORE = 60 };
    size_t at = 0;
    while (list[at] != 0 && list[at] == other[at]) {
        at++;
    }
    return list + (at > BEFORE ? at - BEFORE : 0);
}

static void same_in_each_process(case_run *run, const void *parameters)
{
    static char lists[PROCESSES][LIST_BYTES], selection[128];
    snprintf(selection, sizeof selection, "%s", run->selection);
    for (int i = 0; i < PROCESSES; i++) {
        child looker;
        char end[192];
        case_check(run, child_start(&looker, list_devices, selection), "no process can be started");
        const bool answered = child_read_within(looker.fd, SECONDS, lists[i], LIST_BYTES);
        child_finish(&looker, answered ? SECONDS : 0, end, sizeof end);
        case_check(run, answered, "a process that lists the devices %s",
                   end[0] == 0 ? "says nothing" : end);
        lists[i][LIST_BYTES - 1] = 0;
        case_check(
            run, strcmp(lists[i], lists[0]) == 0,
            "one process describes the devices with ...%.300s, and another one with ...%.300s",
            difference(lists[0], lists[i]), difference(lists[i], lists[0]));
    }
}

/* ---- Nothing is printed ---- */

static void use_device(case_run *run, const void *parameters)
{
    device_open_here(run);
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *x = words_create(run, run->queue, 1000, 1, 1);
    hal_buffer *y = words_create(run, run->queue, 1000, 0, 0);
    scale_dispatch(run, run->queue, kernel, x, y, 1000, 3, 1);
    words_check(run, run->queue, y, 1000, 4, 3, "the result");
    case_release(run, 0);
}

static void no_log(void *user, hal_log_level level, const char *message)
{
    (void)user;
    (void)level;
    (void)message;
}

/* From the opening of the device to its release nothing appears on standard error; the log, which a
 * callback takes, is no part of it. */
static void prints_nothing(case_run *run, const void *parameters)
{
    char text[512] = "";
    const int file = child_unnamed_file(), own = dup(STDERR_FILENO);
    case_check(run, file >= 0 && own >= 0, "there is no file for standard error");
    hal_log_set_callback(no_log, NULL, 0);
    fflush(stderr);
    dup2(file, STDERR_FILENO);
    case_execute(run, use_device, NULL);
    fflush(stderr);
    dup2(own, STDERR_FILENO);
    const ssize_t bytes = pread(file, text, sizeof text - 1, 0);
    close(file);
    close(own);
    case_end_reported(run);
    case_check(run, bytes <= 0,
               "something was printed to standard error, which belongs to the program; a plugin "
               "uses the host's log: %s",
               text);
}

/* ---- Kernels of a compile cache on disk ---- */

typedef struct cache_turn {
    const char *selection, *folder;
    uint32_t turn;
} cache_turn;

static void kernels_of_turn(case_run *run, const void *parameters)
{
    const cache_turn *turn = *(const cache_turn *const *)parameters;
    enum { EACH = 3 }; /* drivers may compile a kernel for a fifth of a second */
    device_open_here(run);
    for (uint32_t which = 0; which <= (turn->turn > 0); which++) {
        for (uint32_t pair = 0; pair < PAIR_COUNT; pair += EACH) {
            pair_check(run, pair_kernel(run, pair, which), pair, which);
        }
    }
}

static void run_turn(void *user, int fd)
{
    cache_turn *turn = user;
    static case_run run;
    setenv("HAL_CACHE_DIR", turn->folder, 1);
    run = (case_run){.selection = turn->selection, .name = "turn"};
    case_execute(&run, kernels_of_turn, &turn);
    case_release(&run, 0);
    child_write(fd, run.detail, sizeof run.detail);
}

/* Files of the folder and of those in it, which are two deep at most. */
static void remove_tree(const char *path, int depth)
{
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        char inner[1024];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
        if (unlink(inner) != 0 && depth > 0) {
            remove_tree(inner, depth - 1);
        }
    }
    if (folder) {
        closedir(folder);
    }
    rmdir(path);
}

/* One process creates the first kernel of each pair and fills the cache; the next ones create both
 * from it, and compute the same. */
static void warm_cache(case_run *run, const void *parameters)
{
    static char folder[] = "/tmp/conformance-XXXXXX", detail[sizeof run->detail], end[192];
    enum { TURNS = 2 };
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    case_check(run, mkdtemp(folder) != NULL, "no folder can be made in /tmp");
    for (uint32_t i = 0; i < TURNS; i++) {
        cache_turn turn = {run->selection, folder, i};
        child compiler;
        bool answered = child_start(&compiler, run_turn, &turn);
        snprintf(end, sizeof end, "cannot be started");
        if (answered) {
            answered = child_read_within(compiler.fd, SECONDS, detail, sizeof detail);
            child_finish(&compiler, answered ? SECONDS : 0, end, sizeof end);
        }
        if (!answered || detail[0] != 0) {
            remove_tree(folder, 3);
            case_fail(run, "with a compile cache that %s: %s", i == 0 ? "is empty" : "is filled",
                      answered ? detail : end);
        }
    }
    remove_tree(folder, 3);
}

/* ---- Memory is exhausted ---- */

/* Of an eighth of the memory. A driver that gives more takes the host's, which the machine
 * needs. */
enum { MOST_BLOCKS = 9 };

static void release_block(void *block)
{
    hal_buffer_release(block);
}

/* Lets the process have `room` more bytes of addresses. False where that cannot be limited. */
static bool addresses_limit(uint64_t room)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    const bool is_known = file && fscanf(file, "%llu", &pages) == 1;
    if (file) {
        fclose(file);
    }
    const rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + room;
    return is_known && setrlimit(RLIMIT_AS, &(struct rlimit){most, RLIM_INFINITY}) == 0;
}

/* Allocates blocks until the device refuses, at most MOST_BLOCKS. */
static uint32_t blocks_allocate(case_run *run, uint64_t bytes, hal_status *status)
{
    uint32_t count = 0;
    *status = HAL_OK;
    while (count < MOST_BLOCKS && *status == HAL_OK) {
        hal_buffer *block = NULL;
        *status = hal_buffer_create(run->device, HAL_MEMORY_DEVICE, bytes, &block);
        if (*status == HAL_OK) {
            case_own(run, release_block, block);
            count++;
        }
    }
    return count;
}

/* What was refused takes nothing: once all blocks are free again there is room for as many. */
static void refusals_take_nothing(case_run *run, uint64_t bytes, uint32_t had, size_t objects)
{
    enum { REFUSALS = 40 };
    hal_memory_statistics memory = {0};
    hal_status status = HAL_ERROR_OUT_OF_MEMORY;
    for (int i = 0; i < REFUSALS && status == HAL_ERROR_OUT_OF_MEMORY; i++) {
        hal_buffer *block = NULL;
        status = hal_buffer_create(run->device, HAL_MEMORY_DEVICE, bytes, &block);
        case_own(run, release_block, block);
    }
    case_release(run, objects);
    case_ok(run, hal_device_trim(run->device), "hal_device_trim");
    case_ok(run, hal_device_get_memory(run->device, &memory), "hal_device_get_memory");
    case_check(run, memory.free_bytes >= bytes,
               "of %llu bytes %llu are free after %d refused allocations, though all memory was "
               "returned",
               (unsigned long long)memory.total_bytes, (unsigned long long)memory.free_bytes,
               REFUSALS);
    const uint32_t has = blocks_allocate(run, bytes, &status);
    case_check(
        run, has + 1 >= had && has > 0,
        "after %d refused allocations there was room for %u blocks of %llu bytes, before for "
        "%u",
        REFUSALS, has, (unsigned long long)bytes, had);
    case_release(run, objects);
    case_ok(run, hal_device_trim(run->device), "hal_device_trim");
}

/* Allocates until the device refuses. Where memory is the host's, the process may have little. */
static void exhausted_steps(case_run *run, const void *parameters)
{
    hal_memory_statistics memory = {0};
    hal_status status = HAL_OK;
    device_open_here(run);
    hal_kernel *kernel = scale_kernel(run, run->device);
    case_ok(run, hal_device_get_memory(run->device, &memory), "hal_device_get_memory");
    const bool is_of_host = run->info->kind != HAL_DEVICE_DISCRETE;
    const uint64_t room = is_of_host ? UINT64_C(4) << 30 : memory.total_bytes;
    uint64_t bytes = run->info->max_allocation < room / 8 ? run->info->max_allocation : room / 8;
    bytes -= bytes % 4096;
    if (is_of_host && !addresses_limit(room)) {
        case_unsupported(run, "the memory of a process cannot be limited here");
    }
    const size_t objects = run->object_count;
    const uint32_t count = blocks_allocate(run, bytes, &status);
    if (status == HAL_OK) {
        case_unsupported(run, "%d allocations of %llu bytes did not exhaust the memory",
                         MOST_BLOCKS, (unsigned long long)bytes);
    }
    case_expect(run, status, HAL_ERROR_OUT_OF_MEMORY, NULL, "an allocation beyond the memory");
    case_release(run, run->object_count - 1); /* room for what small work needs */
    case_ok(run, hal_device_trim(run->device), "hal_device_trim");
    hal_buffer *x = words_create(run, run->queue, 1000, 1, 1);
    hal_buffer *y = words_create(run, run->queue, 1000, 0, 0);
    scale_dispatch(run, run->queue, kernel, x, y, 1000, 3, 1);
    words_check(run, run->queue, y, 1000, 4, 3, "small work after a refused allocation");
    refusals_take_nothing(run, bytes, count, objects);
}

static void exhausted(case_run *run, const void *parameters)
{
    struct rlimit before;
#ifdef CASE_SANITIZED
    case_unsupported(run, "a sanitizer ends the process without memory");
#endif
    getrlimit(RLIMIT_AS, &before);
    case_execute(run, exhausted_steps, parameters);
    setrlimit(RLIMIT_AS, &before);
    case_end_reported(run);
}

void cases_hal_fresh(case_list *list)
{
    static const struct {
        const char *name;
        case_function function;
    } cases[] = {{"device/same_in_each_process", same_in_each_process},
                 {"device/prints_nothing", prints_nothing},
                 {"kernel/warm_cache", warm_cache},
                 {"buffer/exhausted", exhausted}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        case_add(list, cases[i].function, NULL, 0, "%s", cases[i].name);
        case_has_faults(list, "%s", ""); /* a process without a device, and no faults */
    }
}

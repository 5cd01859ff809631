/* external.c: memory that others own, imported from the host and from native handles; exports. */
#include <hal/hal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "case/cases.h"
#include "hal/fixture.h"

enum { COUNT = 1024, BYTES = 4 * COUNT, MARK = 0xa7 };

/* Pages of the host that end before one without access; the range is at their end. */
typedef struct owned_memory {
    uint8_t *pages, *first; /* of the pages, of the range */
    size_t page_bytes, bytes;
    int released;
} owned_memory;

typedef struct external_case {
    uint32_t shift; /* bytes by which the range begins after a multiple of 64, where allowed */
} external_case;

static void buffer_release(void *buffer)
{
    hal_buffer_release(buffer);
}

static void memory_unmap(void *memory)
{
    owned_memory *owned = memory;
    munmap(owned->pages, owned->page_bytes + (size_t)sysconf(_SC_PAGESIZE));
    free(owned);
}

static hal_external_info external_claim(case_run *run, hal_handle_kind kind, bool imports)
{
    hal_external_info info = {0};
    case_ok(run, hal_device_get_external(run->device, &info), "hal_device_get_external");
    const uint32_t kinds = imports ? info.import_kinds : info.export_kinds;
    case_claim(run, (kinds & HAL_HANDLE_BIT(kind)) != 0,
               imports ? "import of this kind of handle" : "export of this kind of handle");
    return info;
}

/* At least BYTES + shift bytes, which the device's granularity divides. */
static owned_memory *memory_map(case_run *run, const hal_external_info *info, uint32_t shift)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), unit = info->host_granularity;
    owned_memory *owned = calloc(1, sizeof *owned);
    case_check(run, owned != NULL, "no host memory");
    owned->bytes = (BYTES + unit - 1) / unit * unit;
    const size_t step = page > info->host_alignment ? page : info->host_alignment;
    owned->page_bytes = (owned->bytes + shift + step) / page * page + page;
    owned->pages = mmap(NULL, owned->page_bytes + page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (owned->pages == MAP_FAILED) {
        free(owned);
        case_fail(run, "no host memory");
    }
    case_own(run, memory_unmap, owned);
    uint8_t *end = owned->pages + owned->page_bytes;
    case_check(run, mprotect(end, page, PROT_NONE) == 0, "mprotect failed");
    memset(owned->pages, MARK, owned->page_bytes);
    owned->first = end - owned->bytes;
    owned->first -= shift % info->host_alignment == 0 ? shift : 0;
    owned->first -= (uintptr_t)owned->first % info->host_alignment;
    return owned;
}

static hal_memory_handle handle_of(const owned_memory *owned, uint32_t access)
{
    return (hal_memory_handle){.size = sizeof(hal_memory_handle),
                               .kind = HAL_HANDLE_HOST,
                               .handle = (uint64_t)(uintptr_t)owned->pages,
                               .offset = (uint64_t)(owned->first - owned->pages),
                               .bytes = owned->bytes,
                               .access = access};
}

static void count_release(void *user)
{
    ((owned_memory *)user)->released++;
}

static hal_buffer *memory_import(case_run *run, owned_memory *owned, uint32_t access)
{
    hal_buffer *buffer = NULL;
    const hal_memory_handle handle = handle_of(owned, access);
    case_ok(run, hal_buffer_import(run->device, &handle, count_release, owned, &buffer),
            "hal_buffer_import");
    return buffer;
}

/* Of a range that the driver may refuse: with a reason, the case is then unsupported. */
static hal_buffer *import_if_allowed(case_run *run, const hal_memory_handle *handle,
                                     owned_memory *owned)
{
    hal_buffer *buffer = NULL;
    const hal_status status = hal_buffer_import(run->device, handle, count_release, owned, &buffer);
    if (status == HAL_ERROR_UNSUPPORTED) {
        case_check(run, hal_status_message()[0] != '\0', "it is refused without a reason");
        case_unsupported(run, "%s", hal_status_message());
    }
    case_ok(run, status, "hal_buffer_import");
    return buffer;
}

/* The host itself writes and compares, at any address. */
static void words_put(owned_memory *owned, uint32_t start, uint32_t step)
{
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t word = start + i * step;
        memcpy(owned->first + 4 * (size_t)i, &word, 4);
    }
}

static void words_expect(case_run *run, const owned_memory *owned, uint32_t start, uint32_t step,
                         const char *what)
{
    for (uint32_t i = 0; i < COUNT; i++) {
        uint32_t word;
        memcpy(&word, owned->first + 4 * (size_t)i, 4);
        case_check(run, word == start + i * step, "%s: word %u is %u instead of %u", what, i, word,
                   start + i * step);
    }
}

static void neighbours_check(case_run *run, const owned_memory *owned)
{
    const uint8_t *end = owned->pages + owned->page_bytes;
    for (const uint8_t *at = owned->pages; at < end; at++) {
        const bool is_inside = at >= owned->first && at < owned->first + owned->bytes;
        case_check(run, is_inside || *at == MARK, "the byte at %td of the range was written",
                   at - owned->first);
    }
}

static void buffer_drop(case_run *run, hal_buffer *buffer, const owned_memory *owned)
{
    hal_buffer_release(buffer);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_check(run, owned->released == 1, "release was called %d times", owned->released);
}

/* Kernels, copies, fills and the host use one memory in turn. */
static void host(case_run *run, const void *parameters)
{
    const external_case *is = parameters;
    const hal_external_info info = external_claim(run, HAL_HANDLE_HOST, true);
    owned_memory *owned = memory_map(run, &info, is->shift);
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *other = words_create(run, run->queue, COUNT, 0, 0);
    words_put(owned, 5, 3);
    hal_buffer *buffer = memory_import(run, owned, HAL_ACCESS_READ_WRITE);
    scale_dispatch(run, run->queue, kernel, buffer, other, COUNT, 2, 1);
    words_check(run, run->queue, other, COUNT, 11, 6, "what a kernel read");
    words_put(owned, 7, 1);
    scale_dispatch(run, run->queue, kernel, buffer, other, COUNT, 3, 0);
    words_check(run, run->queue, other, COUNT, 21, 3, "what it read after the host wrote again");
    scale_dispatch(run, run->queue, kernel, other, buffer, COUNT, 1, 4);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    words_expect(run, owned, 25, 3, "what a kernel wrote");
    const hal_range all = {buffer, 0, BYTES}, half = {buffer, BYTES / 2, BYTES / 2};
    case_ok(run, hal_queue_copy(run->queue, all, (hal_range){other, 0, BYTES}), "copy");
    case_ok(run, hal_queue_fill(run->queue, half, 9), "fill");
    words_check(run, run->queue, other, COUNT, 25, 3, "what a copy read");
    words_check(run, run->queue, buffer, COUNT / 2, 25, 3, "what a read gives");
    for (uint32_t i = COUNT / 2; i < COUNT; i++) {
        uint32_t word;
        memcpy(&word, owned->first + 4 * (size_t)i, 4);
        case_check(run, word == 9, "filled word %u is %u", i, word);
    }
    const uint32_t written = 77;
    case_ok(run, hal_queue_write(run->queue, buffer, 4, &written, 4), "hal_queue_write");
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_check(run, memcmp(owned->first + 4, &written, 4) == 0, "hal_queue_write is not seen");
    case_check(run, hal_buffer_is_shared(buffer), "an imported buffer counts as the caller's only");
    buffer_drop(run, buffer, owned);
    neighbours_check(run, owned);
    case_check(run, memcmp(owned->first + 4, &written, 4) == 0, "the release changed the memory");
}

/* Nothing writes to pages that cannot be written. */
static void read_only(case_run *run, const void *parameters)
{
    const hal_external_info info = external_claim(run, HAL_HANDLE_HOST, true);
    owned_memory *owned = memory_map(run, &info, 0);
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *other = words_create(run, run->queue, COUNT, 0, 0);
    words_put(owned, 1, 2);
    case_check(run, mprotect(owned->pages, owned->page_bytes, PROT_READ) == 0, "mprotect failed");
    const hal_memory_handle handle = handle_of(owned, HAL_ACCESS_READ);
    hal_buffer *buffer = import_if_allowed(run, &handle, owned);
    scale_dispatch(run, run->queue, kernel, buffer, other, COUNT, 5, 0);
    words_check(run, run->queue, other, COUNT, 5, 10, "what a kernel read");
    const hal_range all = {buffer, 0, BYTES};
    const scale_scalars scalars = {COUNT, 1, 1};
    const hal_range bindings[2] = {{other, 0, HAL_WHOLE}, all};
    const uint32_t grid[3] = {COUNT / SCALE_GROUP, 1, 1};
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT;
    case_expect(run, hal_queue_fill(run->queue, all, 3), wrong, "HAL_ACCESS_READ", "a fill");
    case_expect(run, hal_queue_copy(run->queue, bindings[0], all), wrong, "HAL_ACCESS_READ",
                "a copy to it");
    case_expect(run, hal_queue_write(run->queue, buffer, 0, &scalars, 4), wrong, "HAL_ACCESS_READ",
                "a write");
    case_expect(run,
                hal_queue_dispatch(run->queue, kernel, grid, bindings, 2, &scalars, sizeof scalars),
                wrong, "HAL_ACCESS_READ", "a kernel that writes to it");
    buffer_drop(run, buffer, owned);
    words_expect(run, owned, 1, 2, "memory that is read only");
}

/* The release comes after the last batch, also of a buffer that was released before it began. */
static void release_after_work(case_run *run, const void *parameters)
{
    const hal_external_info info = external_claim(run, HAL_HANDLE_HOST, true);
    owned_memory *owned = memory_map(run, &info, 0);
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *other = words_create(run, run->queue, COUNT, 3, 1);
    hal_buffer *buffer = memory_import(run, owned, HAL_ACCESS_READ_WRITE);
    scale_dispatch(run, run->queue, kernel, other, buffer, COUNT, 1, 0);
    hal_buffer_release(buffer);
    case_check(run, owned->released == 0, "released with a command that was not flushed");
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_check(run, owned->released == 1, "release was called %d times after the wait",
               owned->released);
    words_expect(run, owned, 3, 1, "what the last batch wrote");
    owned->released = 0;
    buffer = memory_import(run, owned, HAL_ACCESS_READ);
    hal_buffer_release(buffer);
    case_check(run, owned->released == 1, "the release of an unused import came %d times",
               owned->released);
}

/* Imports take nothing of the pool and leave nothing. */
static void many(case_run *run, const void *parameters)
{
    enum { TURNS = 300 };
    const hal_external_info info = external_claim(run, HAL_HANDLE_HOST, true);
    owned_memory *owned = memory_map(run, &info, 0);
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *other = words_create(run, run->queue, COUNT, 0, 0);
    hal_memory_statistics before = {0}, after = {0};
    words_put(owned, 0, 1);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_ok(run, hal_device_get_memory(run->device, &before), "hal_device_get_memory");
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        hal_buffer *buffer = memory_import(run, owned, HAL_ACCESS_READ);
        scale_dispatch(run, run->queue, kernel, buffer, other, COUNT, 1, turn);
        hal_buffer_release(buffer);
    }
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_ok(run, hal_device_get_memory(run->device, &after), "hal_device_get_memory");
    case_check(run, owned->released == TURNS, "%d of %d imports were released", owned->released,
               TURNS);
    case_check(run,
               before.in_use_bytes == after.in_use_bytes &&
                   before.allocation_count == after.allocation_count,
               "imports allocated memory of the device");
    words_check(run, run->queue, other, COUNT, TURNS - 1, 1, "the result of the last one");
}

/* Two ranges of one page, side by side. */
static void side_by_side(case_run *run, const void *parameters)
{
    const hal_external_info info = external_claim(run, HAL_HANDLE_HOST, true);
    owned_memory *owned = memory_map(run, &info, 0);
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *other = words_create(run, run->queue, COUNT, 0, 0);
    words_put(owned, 3, 1);
    hal_memory_handle handle = handle_of(owned, HAL_ACCESS_READ_WRITE);
    handle.bytes /= 2;
    if (handle.bytes % info.host_granularity != 0) {
        case_unsupported(run, "the device imports whole pages");
    }
    hal_buffer *first = import_if_allowed(run, &handle, owned);
    handle.offset += handle.bytes;
    hal_buffer *second = import_if_allowed(run, &handle, owned);
    scale_dispatch(run, run->queue, kernel, first, second, COUNT / 2, 2, 0);
    hal_buffer_release(first);
    scale_dispatch(run, run->queue, kernel, second, other, COUNT / 2, 1, 1);
    hal_buffer_release(second);
    words_check(run, run->queue, other, COUNT / 2, 7, 2, "what the second one held");
    case_check(run, owned->released == 2, "%d of 2 imports were released", owned->released);
}

/* Handles of the host that differ from a good one in one field. */
static void handle_refusals(case_run *run, hal_memory_handle good, const hal_external_info *info)
{
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT;
    hal_buffer *buffer = NULL;
    hal_memory_handle handle = good;
    handle.access = HAL_ACCESS_WRITE;
    case_expect(run, hal_buffer_import(run->device, &handle, NULL, NULL, &buffer), wrong, "access",
                "an import that is only written");
    handle = good;
    handle.bytes = 0;
    case_expect(run, hal_buffer_import(run->device, &handle, NULL, NULL, &buffer), wrong, "bytes",
                "no bytes");
    handle.bytes = UINT64_MAX - 64;
    case_expect(run, hal_buffer_import(run->device, &handle, NULL, NULL, &buffer), wrong, "bytes",
                "bytes beyond the address space");
    handle = good;
    handle.offset = UINT64_MAX;
    case_expect(run, hal_buffer_import(run->device, &handle, NULL, NULL, &buffer), wrong, "bytes",
                "an offset beyond the address space");
    handle = good;
    handle.handle = 0;
    handle.offset = 0;
    case_expect(run, hal_buffer_import(run->device, &handle, NULL, NULL, &buffer), wrong, NULL,
                "a null address");
    handle = good;
    handle.handle += 1;
    if (info->host_alignment > 1) {
        case_expect(run, hal_buffer_import(run->device, &handle, NULL, NULL, &buffer), wrong,
                    "multiple", "a misaligned address");
    }
}

static void refusals(case_run *run, const void *parameters)
{
    static uint64_t words[64];
    hal_buffer *buffer = (hal_buffer *)run;
    const hal_status wrong = HAL_ERROR_INVALID_ARGUMENT;
    const hal_memory_handle good = {.size = sizeof good,
                                    .kind = HAL_HANDLE_HOST,
                                    .handle = (uint64_t)(uintptr_t)words,
                                    .bytes = sizeof words,
                                    .access = HAL_ACCESS_READ_WRITE};
    hal_memory_handle handle = good;
    hal_external_info info;
    case_expect(run, hal_device_get_external(run->device, NULL), wrong, NULL, "a null info");
    case_expect(run, hal_device_get_external(NULL, &info), wrong, NULL, "a null device");
    case_expect(run, hal_buffer_import(run->device, NULL, NULL, NULL, &buffer), wrong, NULL,
                "a null handle");
    case_expect(run, hal_buffer_import(run->device, &good, NULL, NULL, NULL), wrong, NULL,
                "a null result");
    handle.size = 8;
    case_expect(run, hal_buffer_import(run->device, &handle, NULL, NULL, &buffer), wrong, "size",
                "a handle without its size");
    handle = good;
    handle.kind = 99;
    case_expect(run, hal_buffer_import(run->device, &handle, NULL, NULL, &buffer), wrong, "kind",
                "kind 99");
    case_check(run, !buffer, "a buffer was given with an error");
    hal_memory_handle out;
    hal_buffer *own = case_buffer(run, run->device, HAL_MEMORY_DEVICE, 64);
    case_expect(run, hal_buffer_export(own, (hal_handle_kind)99, &out), wrong, "kind",
                "an export of kind 99");
    case_expect(run, hal_buffer_export(NULL, HAL_HANDLE_NATIVE, &out), wrong, NULL,
                "an export of null");
    info = external_claim(run, HAL_HANDLE_HOST, true);
    owned_memory *owned = memory_map(run, &info, 0);
    hal_buffer_release(memory_import(run, owned, HAL_ACCESS_READ));
    handle_refusals(run, handle_of(owned, HAL_ACCESS_READ_WRITE), &info);
}

/* The native handle of a buffer, imported as a second buffer. */
static void native(case_run *run, const void *parameters)
{
    external_claim(run, HAL_HANDLE_NATIVE, false);
    external_claim(run, HAL_HANDLE_NATIVE, true);
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *first = words_create(run, run->queue, COUNT, 2, 5);
    hal_buffer *other = words_create(run, run->queue, COUNT, 0, 0);
    hal_memory_handle handle = {0};
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    case_ok(run, hal_buffer_export(first, HAL_HANDLE_NATIVE, &handle), "hal_buffer_export");
    case_check(run, handle.handle != 0 && handle.bytes == BYTES && handle.kind == HAL_HANDLE_NATIVE,
               "a handle of %llu bytes", (unsigned long long)handle.bytes);
    case_check(run, hal_buffer_is_shared(first), "an exported buffer counts as the caller's only");
    hal_buffer *second = NULL;
    owned_memory owner = {0};
    case_ok(run, hal_buffer_import(run->device, &handle, count_release, &owner, &second),
            "hal_buffer_import");
    scale_dispatch(run, run->queue, kernel, second, other, COUNT, 2, 1);
    words_check(run, run->queue, other, COUNT, 5, 10, "what was read by the second buffer");
    scale_dispatch(run, run->queue, kernel, other, second, COUNT, 1, 1);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    hal_buffer_release(second);
    case_check(run, owner.released == 1, "the release came %d times", owner.released);
    words_check(run, run->queue, first, COUNT, 6, 10, "what was written by the second buffer");
    handle.bytes = BYTES / 2;
    handle.offset += BYTES / 2;
    const hal_status status = hal_buffer_import(run->device, &handle, NULL, NULL, &second);
    if (status == HAL_ERROR_UNSUPPORTED) { /* the plugin may refuse a range */
        return;
    }
    case_ok(run, status, "a half");
    words_check(run, run->queue, second, COUNT / 2, 6 + 10 * COUNT / 2, 10, "the second half");
    hal_buffer_release(second);
}

/* A native handle of memory that was imported at an offset names what was imported. */
static void native_of_import(case_run *run, const void *parameters)
{
    enum { PART = 256 };
    const hal_external_info info = external_claim(run, HAL_HANDLE_HOST, true);
    external_claim(run, HAL_HANDLE_NATIVE, false);
    external_claim(run, HAL_HANDLE_NATIVE, true);
    if (info.host_granularity > BYTES) {
        case_unsupported(run, "the device imports no ranges of %d bytes", BYTES);
    }
    owned_memory *owned = memory_map(run, &info, 0);
    const hal_memory_handle handle = handle_of(owned, HAL_ACCESS_READ_WRITE);
    hal_buffer *first = import_if_allowed(run, &handle, owned), *second = NULL;
    case_own(run, buffer_release, first);
    hal_memory_handle out = {0};
    words_put(owned, 4, 3);
    hal_status status = hal_buffer_export(first, HAL_HANDLE_NATIVE, &out);
    status = status == HAL_OK ? hal_buffer_import(run->device, &out, NULL, NULL, &second) : status;
    if (status == HAL_ERROR_UNSUPPORTED) { /* the plugin may refuse it */
        case_unsupported(run, "%s", hal_status_message());
    }
    case_ok(run, status, "the handle of imported memory");
    case_own(run, buffer_release, second);
    words_check(run, run->queue, second, PART, 4, 3, "memory by the handle of an import");
}

/* Memory that leaves as a descriptor and comes back as a second buffer. */
static void descriptor(case_run *run, const void *parameters)
{
    const hal_handle_kind kind = (hal_handle_kind) * (const uint32_t *)parameters;
    hal_buffer *first = NULL, *second = NULL;
    external_claim(run, kind, false);
    external_claim(run, kind, true);
    case_ok(run, hal_buffer_create_shareable(run->device, kind, BYTES, &first),
            "hal_buffer_create_shareable");
    case_own(run, buffer_release, first);
    hal_kernel *kernel = scale_kernel(run, run->device);
    hal_buffer *other = words_create(run, run->queue, COUNT, 4, 3);
    scale_dispatch(run, run->queue, kernel, other, first, COUNT, 1, 0);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    hal_memory_handle handle = {0};
    case_ok(run, hal_buffer_export(first, kind, &handle), "hal_buffer_export");
    hal_memory_handle closed = handle;
    closed.handle = 99999;
    case_expect(run, hal_buffer_import(run->device, &closed, NULL, NULL, &second),
                HAL_ERROR_UNSUPPORTED, NULL, "a descriptor that is not open");
    case_ok(run, hal_buffer_import(run->device, &handle, NULL, NULL, &second), "hal_buffer_import");
    case_own(run, buffer_release, second);
    words_check(run, run->queue, second, COUNT, 4, 3, "what the second buffer shows");
    scale_dispatch(run, run->queue, kernel, other, second, COUNT, 2, 7);
    case_ok(run, hal_queue_wait(run->queue, HAL_WAIT_FOREVER), "hal_queue_wait");
    words_check(run, run->queue, first, COUNT, 15, 6, "what was written by the second buffer");
}

/* The names that a message lists after "expected one of": each gives a handle. */
static uint32_t listed_handles(case_run *run, hal_kernel *kernel, hal_queue *queue)
{
    char message[512];
    uint32_t count = 0;
    snprintf(message, sizeof message, "%s", hal_status_message());
    char *names = strstr(message, "expected one of ");
    case_check(run, names != NULL, "the message does not name the types: %s", message);
    names += strlen("expected one of ");
    char *end = strstr(names, ", got");
    case_check(run, end != NULL, "the message does not end: %s", message);
    *end = 0;
    for (char *rest = names, *name; (name = strtok_r(rest, ", ", &rest)) != NULL; count++) {
        uint64_t handle = 0, again = 1;
        for (int turn = 0; turn < 2; turn++) {
            uint64_t *to = turn ? &again : &handle;
            case_ok(run,
                    kernel  ? hal_kernel_get_native(kernel, name, to)
                    : queue ? hal_queue_get_native(queue, name, to)
                            : hal_device_get_native(run->device, name, to),
                    name);
        }
        case_check(run, handle == again, "%s is 0x%llx and then 0x%llx", name,
                   (unsigned long long)handle, (unsigned long long)again);
    }
    return count;
}

static void handles(case_run *run, const void *parameters)
{
    uint64_t handle = 0;
    const hal_status lacks = HAL_ERROR_UNSUPPORTED;
    hal_kernel *kernel = scale_kernel(run, run->device);
    case_expect(run, hal_device_get_native(NULL, "x", &handle), HAL_ERROR_INVALID_ARGUMENT, NULL,
                "the handle of null");
    case_expect(run, hal_device_get_native(run->device, NULL, &handle), HAL_ERROR_INVALID_ARGUMENT,
                "type", "a null type");
    case_expect(run, hal_device_get_native(run->device, "no_such_type", &handle), lacks,
                "no_such_type", "an unknown type of a device");
    if (!strstr(hal_status_message(), "expected one of")) {
        case_unsupported(run, "native handles");
    }
    case_check(run, listed_handles(run, NULL, NULL) > 0, "no handle of the device");
    case_expect(run, hal_queue_get_native(run->queue, "no_such_type", &handle), lacks,
                "no_such_type", "an unknown type of a queue");
    listed_handles(run, NULL, run->queue);
    case_expect(run, hal_kernel_get_native(kernel, "no_such_type", &handle), lacks, "no_such_type",
                "an unknown type of a kernel");
    listed_handles(run, kernel, NULL);
}

void cases_hal_external(case_list *list)
{
    static const external_case shifts[] = {{0}, {4}, {16}, {64}};
    for (size_t i = 0; i < sizeof shifts / sizeof shifts[0]; i++) {
        case_add(list, host, &shifts[i], sizeof shifts[i], "external/host(shift=%u)",
                 shifts[i].shift);
    }
    case_add(list, read_only, NULL, 0, "external/read_only");
    case_add(list, release_after_work, NULL, 0, "external/release_after_work");
    case_add(list, side_by_side, NULL, 0, "external/side_by_side");
    case_add(list, many, NULL, 0, "external/many");
    case_add(list, refusals, NULL, 0, "external/refusals");
    case_add(list, native, NULL, 0, "external/native");
    case_add(list, native_of_import, NULL, 0, "external/handle_of_import");
    case_add(list, handles, NULL, 0, "external/handles");
    const uint32_t opaque = HAL_HANDLE_OPAQUE_FD, dma_buf = HAL_HANDLE_DMA_BUF;
    case_add(list, descriptor, &opaque, sizeof opaque, "external/descriptor(kind=opaque_fd)");
    case_add(list, descriptor, &dma_buf, sizeof dma_buf, "external/descriptor(kind=dma_buf)");
}

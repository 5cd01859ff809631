/* Faults of memory that others own. */
#include "mutant.h"

#include <stdio.h>
#include <string.h>

/* A copy in place of the memory itself. */
static hal_status import_copy(hal_plugin_device *device, const hal_memory_handle *handle,
                              hal_plugin_memory **memory)
{
    void *pointer = NULL;
    hal_status status =
        wrap_inside()->memory_allocate(device, HAL_MEMORY_SHARED, handle->bytes, memory);
    if (status == HAL_OK) {
        status = wrap_inside()->memory_map(device, *memory, &pointer);
    }
    if (status == HAL_OK) {
        memcpy(pointer, (const uint8_t *)(uintptr_t)handle->handle + handle->offset, handle->bytes);
    }
    return status;
}

static void import_copies(wrap_table *table)
{
    table->memory_import = import_copy;
}

static hal_status import_from_start(hal_plugin_device *device, const hal_memory_handle *handle,
                                    hal_plugin_memory **memory)
{
    hal_memory_handle moved = *handle;
    moved.offset = 0;
    return wrap_inside()->memory_import(device, &moved, memory);
}

static void import_offset(wrap_table *table)
{
    table->memory_import = import_from_start;
}

static uint8_t *address_of(const hal_memory_handle *handle)
{
    return (uint8_t *)(uintptr_t)(handle->handle + handle->offset);
}

static hal_status import_touched(hal_plugin_device *device, const hal_memory_handle *handle,
                                 hal_plugin_memory **memory)
{
    volatile uint8_t *first = address_of(handle);
    *first = *first;
    return wrap_inside()->memory_import(device, handle, memory);
}

/* Memory that may only be read is written, with what it has. */
static void import_touches(wrap_table *table)
{
    table->memory_import = import_touched;
}

static hal_status import_spilled(hal_plugin_device *device, const hal_memory_handle *handle,
                                 hal_plugin_memory **memory)
{
    if (handle->kind == HAL_HANDLE_HOST && handle->access == HAL_ACCESS_READ_WRITE &&
        handle->offset > 0) {
        address_of(handle)[-1] = 0;
    }
    return wrap_inside()->memory_import(device, handle, memory);
}

static void import_spills(wrap_table *table)
{
    table->memory_import = import_spilled;
}

static hal_status import_noted(hal_plugin_device *device, const hal_memory_handle *handle,
                               hal_plugin_memory **memory)
{
    const hal_status status = wrap_inside()->memory_import(device, handle, memory);
    uint8_t **kept = status == HAL_OK && handle->access == HAL_ACCESS_READ_WRITE
                         ? wrap_keep(*memory, sizeof *kept)
                         : NULL;
    if (kept) {
        *kept = address_of(handle);
    }
    return status;
}

static void free_and_clear(hal_plugin_device *device, hal_plugin_memory *memory)
{
    uint8_t **kept = wrap_find(memory);
    if (kept) {
        memset(*kept, 0, 8);
        wrap_drop(memory);
    }
    wrap_inside()->memory_free(device, memory);
}

/* Imported memory is cleared when it is freed. */
static void import_clears(wrap_table *table)
{
    table->memory_import = import_noted;
    table->memory_free = free_and_clear;
}

static hal_status import_aligned_only(hal_plugin_device *device, const hal_memory_handle *handle,
                                      hal_plugin_memory **memory)
{
    if ((uintptr_t)address_of(handle) % 64 != 0) {
        return wrap_fail(HAL_ERROR_UNSUPPORTED, "mutant: the address is not aligned");
    }
    return wrap_inside()->memory_import(device, handle, memory);
}

/* Addresses that external_info allows are refused. */
static void import_aligned(wrap_table *table)
{
    table->memory_import = import_aligned_only;
}

static _Atomic uintptr_t page_held;

static hal_status import_page(hal_plugin_device *device, const hal_memory_handle *handle,
                              hal_plugin_memory **memory)
{
    const uintptr_t page = (uintptr_t)address_of(handle) / 4096;
    if (handle->kind == HAL_HANDLE_HOST && page_held == page) {
        return wrap_fail(HAL_ERROR_INTERNAL, "mutant: the page is imported already");
    }
    const hal_status status = wrap_inside()->memory_import(device, handle, memory);
    if (status == HAL_OK && wrap_keep(*memory, 1)) {
        page_held = page;
    }
    return status;
}

static void free_page(hal_plugin_device *device, hal_plugin_memory *memory)
{
    if (wrap_find(memory)) {
        page_held = 0;
        wrap_drop(memory);
    }
    wrap_inside()->memory_free(device, memory);
}

/* A page of which a part is imported is not imported again. */
static void import_once(wrap_table *table)
{
    table->memory_import = import_page;
    table->memory_free = free_page;
}

static hal_status export_moved(hal_plugin_device *device, hal_plugin_memory *memory, uint32_t kind,
                               hal_memory_handle *handle)
{
    const hal_status status = wrap_inside()->memory_export(device, memory, kind, handle);
    handle->offset += 64;
    return status;
}

static void export_offset(wrap_table *table)
{
    table->memory_export = export_moved;
}

/* ---- Reserved memory, whose address the inside tells ---- */

static void word_clear(hal_plugin_device *device, hal_plugin_memory *memory, uint64_t offset)
{
    void *pointer = NULL;
    if (wrap_inside()->memory_map(device, memory, &pointer) == HAL_OK) {
        memset((uint8_t *)pointer + offset, 0, 4);
    }
}

static hal_status commit_and_clear(hal_plugin_device *device, hal_plugin_memory *memory,
                                   uint64_t offset, uint64_t bytes)
{
    static uint64_t last; /* the end of what has memory */
    const hal_status status = wrap_inside()->memory_commit(device, memory, offset, bytes);
    last = offset + bytes > last ? offset + bytes : last;
    if (status == HAL_OK && offset + bytes < last) {
        word_clear(device, memory, offset + bytes);
    }
    return status;
}

/* New memory for a part clears the beginning of the next one. */
static void commit_spills(wrap_table *table)
{
    table->memory_commit = commit_and_clear;
}

static hal_status decommit_and_clear(hal_plugin_device *device, hal_plugin_memory *memory,
                                     uint64_t offset, uint64_t bytes)
{
    if (offset > 0) {
        word_clear(device, memory, offset - 4);
    }
    return wrap_inside()->memory_decommit(device, memory, offset, bytes);
}

/* A part that loses its memory takes the last word of the part before with it. */
static void decommit_spills(wrap_table *table)
{
    table->memory_decommit = decommit_and_clear;
}

static hal_status protect_and_clear(hal_plugin_device *device, hal_plugin_memory *memory,
                                    uint64_t offset, uint64_t bytes, uint32_t access)
{
    word_clear(device, memory, offset);
    return wrap_inside()->memory_protect(device, memory, offset, bytes, access);
}

static void protect_clears(wrap_table *table)
{
    table->memory_protect = protect_and_clear;
}

/* ---- Reports ---- */

static hal_status report_counts(hal_plugin_device *device, hal_plugin_kernel *kernel,
                                hal_kernel_report *report)
{
    static uint32_t calls;
    const hal_status status = wrap_inside()->kernel_report(device, kernel, report);
    report->known |= HAL_REPORT_CODE;
    report->code_bytes += 1 + calls++;
    return status;
}

/* The code of a kernel has another size each time. */
static void report_rises(wrap_table *table)
{
    table->kernel_report = report_counts;
}

static hal_status clocks_in_micro(hal_plugin_device *device, hal_clocks *clocks)
{
    const hal_status status = wrap_inside()->clocks_read(device, clocks);
    clocks->device_ns /= 1000;
    return status;
}

/* The device's clock has another unit than the times of batches. */
static void clocks_unit(wrap_table *table)
{
    table->clocks_read = clocks_in_micro;
}

static hal_status time_since_first(hal_plugin_queue *queue, uint64_t value, uint64_t *device_ns)
{
    uint64_t first = 0;
    hal_status status = wrap_inside()->queue_time(queue, 1, &first);
    status = status == HAL_OK ? wrap_inside()->queue_time(queue, value, device_ns) : status;
    *device_ns -= first;
    return status;
}

/* Times of batches begin with the queue. */
static void time_of_queue(wrap_table *table)
{
    table->queue_time = time_since_first;
}

/* ---- Quirks ---- */

static hal_status quirk_again(hal_plugin_device *device, uint32_t index, hal_quirk *quirk)
{
    (void)device;
    (void)index;
    *quirk = (hal_quirk){.size = quirk->size, .name = "same", .reason = "it is like that"};
    return HAL_OK;
}

/* No index is after the last quirk. */
static void quirks_endless(wrap_table *table)
{
    table->device_quirk = quirk_again;
}

static hal_status quirk_twice(hal_plugin_device *device, uint32_t index, hal_quirk *quirk)
{
    return index < 2 ? quirk_again(device, index, quirk) : HAL_OK;
}

/* Two quirks have one name. */
static void quirks_twice(wrap_table *table)
{
    table->device_quirk = quirk_twice;
}

static hal_status quirk_moves(hal_plugin_device *device, uint32_t index, hal_quirk *quirk)
{
    static uint32_t calls;
    if (index < 2) {
        (void)quirk_again(device, index, quirk);
        calls += index == 0;
        quirk->name = (calls + index) & 1 ? "odd" : "even";
    }
    return HAL_OK;
}

/* The numbers of quirks change with each call. */
static void quirks_move(wrap_table *table)
{
    table->device_quirk = quirk_moves;
}

static hal_status quirk_silent(hal_plugin_device *device, uint32_t index, hal_quirk *quirk)
{
    (void)device;
    quirk->name = index == 0 ? "silent" : NULL;
    return HAL_OK;
}

/* A quirk has no reason. */
static void quirks_silent(wrap_table *table)
{
    table->device_quirk = quirk_silent;
}

static hal_status quirk_in_buffer(hal_plugin_device *device, uint32_t index, hal_quirk *quirk)
{
    static char name[16];
    (void)device;
    if (index < 2) {
        snprintf(name, sizeof name, "number_%u", index);
        *quirk = (hal_quirk){.size = quirk->size, .name = name, .reason = "it is numbered"};
    }
    return HAL_OK;
}

/* A quirk's name is overwritten by that of the next one. */
static void quirks_overwritten(wrap_table *table)
{
    table->device_quirk = quirk_in_buffer;
}

const mutant mutants_external[] = {{.name = "quirks_overwritten", .table = quirks_overwritten},
                                   {.name = "quirks_endless", .table = quirks_endless},
                                   {.name = "quirks_twice", .table = quirks_twice},
                                   {.name = "quirks_move", .table = quirks_move},
                                   {.name = "quirks_silent", .table = quirks_silent},
                                   {.name = "report_rises", .table = report_rises},
                                   {.name = "clocks_unit", .table = clocks_unit},
                                   {.name = "time_of_queue", .table = time_of_queue},
                                   {.name = "commit_spills", .table = commit_spills},
                                   {.name = "decommit_spills", .table = decommit_spills},
                                   {.name = "protect_clears", .table = protect_clears},
                                   {.name = "import_copies", .table = import_copies},
                                   {.name = "import_offset", .table = import_offset},
                                   {.name = "import_touches", .table = import_touches},
                                   {.name = "import_spills", .table = import_spills},
                                   {.name = "import_clears", .table = import_clears},
                                   {.name = "import_aligned", .table = import_aligned},
                                   {.name = "import_once", .table = import_once},
                                   {.name = "export_offset", .table = export_offset},
                                   {.name = NULL}};

/* authors.c: what authors of plugins got wrong on less trodden ways: commands whose shape is rare,
 * calls that leave something only with some arguments, entries that hal seldom calls, keys of
 * caches, and patterns of a compiler that look like another operation. */
#include "edit.h"

#include <fenv.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static void keep_bytes(size_t bytes)
{
    char *kept = malloc(bytes);
    if (kept) {
        *(volatile char *)kept = 1;
    }
}

/* ---- Commands ---- */

static hal_binding *bindings_of(wrap_batch *batch, uint32_t command)
{
    return &batch->bindings[batch->commands[command].binding_first];
}

static void eights_26_bits(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        const hal_command *command = &batch->commands[i];
        if (command->kind == HAL_COMMAND_FILL && command->scalar_bytes == 8) {
            bindings_of(batch, i)->offset &= 0x3ffffff;
        }
    }
}

/* Long copies begin at a whole word. */
static void copy_odd_long(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        hal_binding *source = bindings_of(batch, i);
        if (batch->commands[i].kind == HAL_COMMAND_COPY && source->length >= 1 << 20) {
            source->offset -= source->offset % 4;
        }
    }
}

/* Rows of the same pitch on both sides are one block. */
static void rows_block(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        const hal_command *command = &batch->commands[i];
        hal_plugin_copy_rows rows;
        if (command->kind != HAL_COMMAND_COPY_ROWS) {
            continue;
        }
        memcpy(&rows, batch->scalars + command->scalar_first, sizeof(rows));
        if (rows.source_pitch == rows.target_pitch) {
            rows.row_bytes += rows.source_pitch * (rows.rows - 1);
            rows.rows = 1;
        }
        memcpy(batch->scalars + command->scalar_first, &rows, sizeof(rows));
    }
}

/* Of one row in each slice the pitch counts. */
static void rows_one(wrap_batch *batch)
{
    for (uint32_t i = 0; i < batch->batch.command_count; i++) {
        const hal_command *command = &batch->commands[i];
        hal_plugin_copy_rows rows;
        if (command->kind == HAL_COMMAND_COPY_ROWS) {
            memcpy(&rows, batch->scalars + command->scalar_first, sizeof(rows));
            rows.source_slice = rows.rows == 1 ? rows.source_pitch : rows.source_slice;
            memcpy(batch->scalars + command->scalar_first, &rows, sizeof(rows));
        }
    }
}

/* ---- Times and reports ---- */

static hal_status submit_empty(hal_plugin_queue *queue, const hal_batch *batch,
                               const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    uint64_t *last = wrap_keep(queue, sizeof(*last));
    if (last && batch->command_count == 0) {
        *last = value;
    }
    return wrap_inside()->submit(queue, batch, waits, wait_count, value);
}

static hal_status elapsed_of_empty(hal_plugin_queue *queue, uint64_t first, uint64_t second,
                                   uint64_t *nanoseconds)
{
    const uint64_t *last = wrap_find(queue);
    *nanoseconds = 0;
    return last && (*last == first || *last == second)
               ? HAL_OK
               : wrap_inside()->queue_elapsed(queue, first, second, nanoseconds);
}

static void queue_forget(hal_plugin_device *device, hal_plugin_queue *queue)
{
    wrap_drop(queue);
    wrap_inside()->queue_destroy(device, queue);
}

/* The last batch without commands has no time. */
static void elapsed_empty(wrap_table *table)
{
    table->submit = submit_empty;
    table->queue_destroy = queue_forget;
    table->queue_elapsed = elapsed_of_empty;
}

static hal_plugin_kernel *newest;

static hal_status create_newest(hal_plugin_device *device, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel)
{
    const hal_status status = wrap_inside()->kernel_create(device, ir, kernel);
    newest = status == HAL_OK ? *kernel : newest;
    return status;
}

static hal_status report_newest(hal_plugin_device *device, hal_plugin_kernel *kernel,
                                hal_kernel_report *report)
{
    return wrap_inside()->kernel_report(device, newest ? newest : kernel, report);
}

static void destroy_newest(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    newest = newest == kernel ? NULL : newest;
    wrap_inside()->kernel_destroy(device, kernel);
}

/* The report is that of the kernel that was created last. */
static void report_of_last(wrap_table *table)
{
    table->kernel_create = create_newest;
    table->kernel_destroy = destroy_newest;
    table->kernel_report = report_newest;
}

static hal_status report_with_time(hal_plugin_device *device, hal_plugin_kernel *kernel,
                                   hal_kernel_report *report)
{
    const hal_status status = wrap_inside()->kernel_report(device, kernel, report);
    report->compile_ns = 1;
    return status;
}

static void report_of_hal(wrap_table *table)
{
    table->kernel_report = report_with_time;
}

/* ---- What is left ---- */

static hal_status submit_noted(hal_plugin_queue *queue, const hal_batch *batch,
                               const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    wrap_keep(queue, 1);
    return wrap_inside()->submit(queue, batch, waits, wait_count, value);
}

static void destroy_idle(hal_plugin_device *device, hal_plugin_queue *queue)
{
    if (!wrap_find(queue)) {
        keep_bytes(64);
    }
    wrap_drop(queue);
    wrap_inside()->queue_destroy(device, queue);
}

static void leak_idle_queue(wrap_table *table)
{
    table->submit = submit_noted;
    table->queue_destroy = destroy_idle;
}

static hal_status submit_two_waits(hal_plugin_queue *queue, const hal_batch *batch,
                                   const hal_plugin_wait *waits, uint32_t wait_count,
                                   uint64_t value)
{
    if (wait_count >= 2) {
        keep_bytes(48);
    }
    return wrap_inside()->submit(queue, batch, waits, wait_count, value);
}

static void leak_two_waits(wrap_table *table)
{
    table->submit = submit_two_waits;
}

static hal_status submit_untimed(hal_plugin_queue *queue, const hal_batch *batch,
                                 const hal_plugin_wait *waits, uint32_t wait_count, uint64_t value)
{
    if ((batch->flags & HAL_BATCH_UNTIMED) != 0) {
        keep_bytes(24);
    }
    return wrap_inside()->submit(queue, batch, waits, wait_count, value);
}

static void leak_untimed(wrap_table *table)
{
    table->submit = submit_untimed;
}

static hal_status wait_endless(hal_plugin_queue *queue, uint64_t value, uint64_t timeout_ns)
{
    if (timeout_ns == UINT64_MAX) {
        keep_bytes(24);
    }
    return wrap_inside()->wait(queue, value, timeout_ns);
}

static void leak_endless_wait(wrap_table *table)
{
    table->wait = wait_endless;
}

static hal_status time_refused(hal_plugin_queue *queue, uint64_t value, uint64_t *device_ns)
{
    const hal_status status = wrap_inside()->queue_time(queue, value, device_ns);
    if (status != HAL_OK) {
        keep_bytes(24);
    }
    return status;
}

static void leak_time_refused(wrap_table *table)
{
    table->queue_time = time_refused;
}

static hal_status create_of_four(hal_plugin_device *device, const hal_ir_kernel *ir,
                                 hal_plugin_kernel **kernel)
{
    if (ir->binding_count >= 4) {
        keep_bytes(32);
    }
    return wrap_inside()->kernel_create(device, ir, kernel);
}

static void leak_four_bindings(wrap_table *table)
{
    table->kernel_create = create_of_four;
}

static hal_status create_noted(hal_plugin_device *device, const hal_ir_kernel *ir,
                               hal_plugin_kernel **kernel)
{
    wrap_keep(device, 1);
    return wrap_inside()->kernel_create(device, ir, kernel);
}

static void close_used(hal_plugin_device *device)
{
    if (wrap_find(device)) {
        keep_bytes(4096);
    }
    wrap_drop(device);
    wrap_inside()->device_close(device);
}

static void leak_used_device(wrap_table *table)
{
    table->kernel_create = create_noted;
    table->device_close = close_used;
}

static hal_status allocate_noted(hal_plugin_device *device, uint32_t kind, uint64_t bytes,
                                 hal_plugin_memory **memory)
{
    const hal_status status = wrap_inside()->memory_allocate(device, kind, bytes, memory);
    if (status == HAL_OK && kind != HAL_MEMORY_DEVICE && bytes > 65536) {
        wrap_keep(*memory, 1);
    }
    return status;
}

/* Memory that has a record stays. */
static void free_unless_noted(hal_plugin_device *device, hal_plugin_memory *memory)
{
    const bool stays = wrap_find(memory) != NULL;
    wrap_drop(memory);
    if (!stays) {
        wrap_inside()->memory_free(device, memory);
    }
}

static void leak_mapped_large(wrap_table *table)
{
    table->memory_allocate = allocate_noted;
    table->memory_free = free_unless_noted;
}

static hal_status commit_noted(hal_plugin_device *device, hal_plugin_memory *memory,
                               uint64_t offset, uint64_t bytes)
{
    uint64_t *has = wrap_keep(memory, sizeof(*has));
    if (has) {
        *has += bytes;
    }
    return wrap_inside()->memory_commit(device, memory, offset, bytes);
}

static hal_status decommit_noted(hal_plugin_device *device, hal_plugin_memory *memory,
                                 uint64_t offset, uint64_t bytes)
{
    uint64_t *has = wrap_find(memory);
    if (has && (*has -= bytes) == 0) {
        wrap_drop(memory);
    }
    return wrap_inside()->memory_decommit(device, memory, offset, bytes);
}

/* Addresses that are freed while they have memory stay. */
static void leak_committed(wrap_table *table)
{
    table->memory_commit = commit_noted;
    table->memory_decommit = decommit_noted;
    table->memory_free = free_unless_noted;
}

/* ---- Addresses ---- */

static hal_status reserve_up_to_memory(hal_plugin_device *device, uint64_t bytes,
                                       hal_plugin_memory **memory)
{
    uint64_t free_bytes = 0, total = 0;
    wrap_inside()->memory_info(device, &free_bytes, &total);
    return bytes > total ? wrap_fail(HAL_ERROR_OUT_OF_MEMORY, "mutant: more than the device has")
                         : wrap_inside()->memory_reserve(device, bytes, memory);
}

static void reserve_memory_only(wrap_table *table)
{
    table->memory_reserve = reserve_up_to_memory;
}

static hal_status decommit_but_last(hal_plugin_device *device, hal_plugin_memory *memory,
                                    uint64_t offset, uint64_t bytes)
{
    uint64_t part = 0;
    wrap_inside()->part_bytes(device, &part);
    return wrap_inside()->memory_decommit(device, memory, offset,
                                          bytes > part ? bytes - part : bytes);
}

/* Of several parts the last one keeps its memory. */
static void decommit_last(wrap_table *table)
{
    table->memory_decommit = decommit_but_last;
}

static hal_status import_with_offset(hal_plugin_device *device, const hal_memory_handle *handle,
                                     hal_plugin_memory **memory)
{
    const hal_status status = wrap_inside()->memory_import(device, handle, memory);
    uint64_t *offset = status == HAL_OK ? wrap_keep(*memory, sizeof(*offset)) : NULL;
    if (offset) {
        *offset = handle->offset;
    }
    return status;
}

static hal_status export_whole(hal_plugin_device *device, hal_plugin_memory *memory, uint32_t kind,
                               hal_memory_handle *handle)
{
    const uint64_t *offset = wrap_find(memory);
    const hal_status status = wrap_inside()->memory_export(device, memory, kind, handle);
    handle->handle -= offset ? *offset : 0;
    return status;
}

static void free_forgotten(hal_plugin_device *device, hal_plugin_memory *memory)
{
    wrap_drop(memory);
    wrap_inside()->memory_free(device, memory);
}

/* The handle of imported memory lacks the offset of the import. */
static void export_of_import(wrap_table *table)
{
    table->memory_import = import_with_offset;
    table->memory_export = export_whole;
    table->memory_free = free_forgotten;
}

/* ---- The process ---- */

static void stack_take(void)
{
    volatile char frame[256 * 1024];
    for (size_t i = 0; i < sizeof frame; i += 1024) {
        frame[i] = (char)(frame[0] + 1);
    }
}

static hal_status enumerate_deep(hal_plugin_instance *instance, hal_device_info *infos,
                                 uint32_t capacity, uint32_t *count)
{
    stack_take();
    return wrap_inside()->enumerate(instance, infos, capacity, count);
}

static void enumerate_256_kib(wrap_table *table)
{
    table->enumerate = enumerate_deep;
}

static hal_status import_deep(hal_plugin_device *device, const hal_memory_handle *handle,
                              hal_plugin_memory **memory)
{
    stack_take();
    return wrap_inside()->memory_import(device, handle, memory);
}

static void import_256_kib(wrap_table *table)
{
    table->memory_import = import_deep;
}

static void copy_downward(hal_plugin_device *device, void *target, const void *source,
                          uint64_t bytes)
{
    wrap_inside()->host_copy(device, target, source, bytes);
    fesetround(FE_DOWNWARD);
}

static void host_copy_rounding_left(wrap_table *table)
{
    table->host_copy = copy_downward;
}

static hal_status reserve_masked(hal_plugin_device *device, uint64_t bytes,
                                 hal_plugin_memory **memory)
{
    umask(077);
    return wrap_inside()->memory_reserve(device, bytes, memory);
}

static void reserve_umask_left(wrap_table *table)
{
    table->memory_reserve = reserve_masked;
}

static hal_status report_downward(hal_plugin_device *device, hal_plugin_kernel *kernel,
                                  hal_kernel_report *report)
{
    fesetround(FE_DOWNWARD);
    return wrap_inside()->kernel_report(device, kernel, report);
}

static void report_rounding_left(wrap_table *table)
{
    table->kernel_report = report_downward;
}

/* ---- Identity and words ---- */

static hal_status open_any_case(hal_plugin_instance *instance, const char *id,
                                hal_plugin_device **device)
{
    const bool is_first = strcasecmp(id, wrap_first_id()) == 0;
    return wrap_inside()->device_open(instance, is_first ? wrap_first_id() : id, device);
}

static void open_any_letters(wrap_table *table)
{
    table->device_open = open_any_case;
}

static hal_status export_silently(hal_plugin_device *device, hal_plugin_memory *memory,
                                  uint32_t kind, hal_memory_handle *handle)
{
    return kind == HAL_HANDLE_HOST ? HAL_ERROR_UNSUPPORTED
                                   : wrap_inside()->memory_export(device, memory, kind, handle);
}

static void export_silent(wrap_table *table)
{
    table->memory_export = export_silently;
}

static hal_status commit_silently(hal_plugin_device *device, hal_plugin_memory *memory,
                                  uint64_t offset, uint64_t bytes)
{
    return bytes >> 32 ? HAL_ERROR_OUT_OF_MEMORY
                       : wrap_inside()->memory_commit(device, memory, offset, bytes);
}

static void commit_silent(wrap_table *table)
{
    table->memory_commit = commit_silently;
}

static hal_status commit_kept(hal_plugin_device *device, hal_plugin_memory *memory, uint64_t offset,
                              uint64_t bytes)
{
    if (wrap_find(memory)) {
        return wrap_fail(HAL_ERROR_INTERNAL, "mutant: the part has memory already");
    }
    const hal_status status = wrap_inside()->memory_commit(device, memory, offset, bytes);
    if (status != HAL_OK) {
        wrap_keep(memory, 1);
    }
    return status;
}

/* Parts that could not get memory count as parts with memory. */
static void commit_half_done(wrap_table *table)
{
    table->memory_commit = commit_kept;
    table->memory_free = free_forgotten;
}

/* ---- A cache of kernels whose key lacks the lengths of shared arrays ---- */

typedef struct cached {
    struct cached *next;
    uint64_t key;
    hal_plugin_device *device;
    hal_plugin_kernel *kernel;
    uint32_t users;
} cached;

static cached *all_cached;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t hash(uint64_t key, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        key = (key ^ ((const uint8_t *)data)[i]) * UINT64_C(1099511628211); /* FNV-1a */
    }
    return key;
}

static uint64_t key_of(const hal_ir_kernel *ir)
{
    uint64_t key = hash(UINT64_C(14695981039346656037), &ir->binding_count, 4);
    key = hash(key, ir->records, ir->record_count * sizeof(*ir->records));
    key = hash(key, ir->constants, ir->constant_count * sizeof(*ir->constants));
    key = hash(key, ir->group_size, sizeof(ir->group_size));
    key = hash(key, &ir->flags, sizeof(ir->flags));
    for (uint32_t i = 0; i < ir->memory_count; i++) {
        key = hash(key, &ir->memories[i].type, 1);
        key = hash(key, &ir->memories[i].access, 1);
    }
    for (uint32_t i = 0; i < ir->scalar_count; i++) {
        key = hash(key, &ir->scalars[i].offset, sizeof(ir->scalars[i].offset));
    }
    return key;
}

static hal_status create_cached(hal_plugin_device *device, const hal_ir_kernel *ir,
                                hal_plugin_kernel **kernel)
{
    const uint64_t key = key_of(ir);
    hal_status status = HAL_OK;
    pthread_mutex_lock(&lock);
    cached *found = all_cached;
    while (found && (found->key != key || found->device != device)) {
        found = found->next;
    }
    if (!found) {
        status = wrap_inside()->kernel_create(device, ir, kernel);
        found = status == HAL_OK ? calloc(1, sizeof(*found)) : NULL;
        if (found) {
            *found = (cached){all_cached, key, device, *kernel, 0};
            all_cached = found;
        }
    }
    if (found) {
        found->users++;
        *kernel = found->kernel;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

static void destroy_cached(hal_plugin_device *device, hal_plugin_kernel *kernel)
{
    pthread_mutex_lock(&lock);
    cached **place = &all_cached, *found = NULL;
    while (*place && (*place)->kernel != kernel) {
        place = &(*place)->next;
    }
    found = *place;
    const bool is_over = !found || --found->users == 0;
    if (found && is_over) {
        *place = found->next;
        free(found);
    }
    pthread_mutex_unlock(&lock);
    if (is_over) {
        wrap_inside()->kernel_destroy(device, kernel);
    }
}

static void cache_shared_length(wrap_table *table)
{
    table->kernel_create = create_cached;
    table->kernel_destroy = destroy_cached;
}

/* ---- Patterns of a compiler ---- */

static bool is_shift(const wrap_ir *ir, hal_ir_value value, uint16_t opcode)
{
    const hal_ir_record *record = &ir->records[value];
    return record->opcode == opcode && ir->records[record->b].opcode == HAL_IR_CONSTANT;
}

/* x << a | x >> b with constants is a rotation by a, whatever b is. */
static uint32_t rotate_any(wrap_ir *ir, uint32_t i)
{
    const hal_ir_value left = ir->records[i].a, right = ir->records[i].b;
    if (!is_shift(ir, left, HAL_IR_SHL) || !is_shift(ir, right, HAL_IR_SHR) ||
        ir->records[left].a != ir->records[right].a) {
        return i;
    }
    const hal_ir_value x = ir->records[left].a;
    const uint64_t places = ir->constants[ir->records[ir->records[left].b].aux];
    uint32_t at = i;
    const hal_ir_value rest = NUMBER(HAL_TYPE_U32, (32 - places) % 32);
    const hal_ir_value turned = OPERATE(SHR, HAL_TYPE_U32, x, rest);
    ir->records[at].b = turned;
    return at;
}

/* No fault. */
static hal_status open_slowly(hal_plugin_instance *instance, const char *id,
                              hal_plugin_device **device)
{
    usleep(600000);
    return wrap_inside()->device_open(instance, id, device);
}

static void slow_open(wrap_table *table)
{
    table->device_open = open_slowly;
}

const mutant mutants_authors[] = {TABLE(slow_open),
                                  BATCH(eights_26_bits),
                                  BATCH(copy_odd_long),
                                  BATCH(rows_block),
                                  TABLE(leak_idle_queue),
                                  TABLE(leak_two_waits),
                                  TABLE(leak_untimed),
                                  TABLE(leak_endless_wait),
                                  TABLE(leak_time_refused),
                                  TABLE(leak_four_bindings),
                                  TABLE(leak_used_device),
                                  TABLE(leak_mapped_large),
                                  TABLE(leak_committed),
                                  TABLE(host_copy_rounding_left),
                                  TABLE(reserve_umask_left),
                                  TABLE(report_rounding_left),
                                  TABLE(open_any_letters),
                                  BATCH(rows_one),
                                  TABLE(elapsed_empty),
                                  TABLE(report_of_last),
                                  TABLE(report_of_hal),
                                  TABLE(decommit_last),
                                  TABLE(export_of_import),
                                  TABLE(reserve_memory_only),
                                  TABLE(enumerate_256_kib),
                                  TABLE(import_256_kib),
                                  TABLE(export_silent),
                                  TABLE(commit_silent),
                                  TABLE(commit_half_done),
                                  TABLE(cache_shared_length),
                                  RECORD(rotate_any, OR, U32),
                                  {.name = NULL}};

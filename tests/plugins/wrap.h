/* A plugin around another plugin: opens that one's shared object, takes its table, and lets a small
 * source alter whatever it wants of it. The table that comes of it forwards everything else, as its
 * entries are those of the plugin inside; objects are the inside's own, so nothing is translated.
 *
 * The small source has the one symbol:
 *
 *     const hal_plugin *hal_plugin_create(uint32_t host_abi, const hal_host *host,
 *                                         hal_plugin_instance **instance)
 *     {
 *         wrap_table *table = wrap_open(WRAP_TARGET, host_abi, host, instance);
 *         if (table) {
 *             table->gemm = NULL;
 *         }
 *         return wrap_plugin(table);
 *     }
 *
 * Threads: what the plugin contract allows; wrap_keep and its kin may be called from any thread. */
#ifndef TESTS_PLUGINS_WRAP_H
#define TESTS_PLUGINS_WRAP_H

#include "../../hal/src/plugin/entries.h"

#include <hal/plugin.h>
#include <stdbool.h>
#include <stddef.h>

/* The table of the plugin at `path`, opened with `host` (which has to stay), under the name that
 * this object's own file has: hal_NAME.so. The table is this object's, to be altered; each call
 * gives the same one, as it was at first. Null when there is no table; the log has the reason. */
typedef hal_plugin_entries wrap_table; /* the entries of all tables */
wrap_table *wrap_open(const char *path, uint32_t host_abi, const hal_host *host,
                      hal_plugin_instance **instance);

/* The plugin of an altered table: an extension without an entry is not offered. Null for null. */
const hal_plugin *wrap_plugin(const wrap_table *table);

/* The id of the first device inside; "" without one. */
const char *wrap_first_id(void);

/* The table as the plugin inside gave it, and the host's services: for entries that forward. */
const wrap_table *wrap_inside(void);
const hal_host *wrap_host(void);

/* Gives the host a message. */
hal_status wrap_fail(hal_status status, const char *message);

/* The symbol of each wrapping plugin. */
__attribute__((visibility("default"))) const hal_plugin *
hal_plugin_create(uint32_t host_abi, const hal_host *host, hal_plugin_instance **instance);

/* NAME of this object's file hal_NAME.so. */
const char *wrap_name(void);

/* ---- Batches ---- */

/* A batch whose commands, bindings and scalars may be altered. `batch` refers to the arrays; it
 * belongs to the caller until wrap_batch_free. 8 bytes of 0 follow the scalars. */
typedef struct wrap_batch {
    hal_batch batch;
    hal_command *commands;
    hal_binding *bindings;
    uint8_t *scalars;
} wrap_batch;

/* False when there is no host memory; then there is nothing to free. */
bool wrap_batch_copy(wrap_batch *copy, const hal_batch *batch);
void wrap_batch_free(wrap_batch *copy);

/* ---- Kernels ---- */

/* IR whose records, memories and constants may be altered, in place or by wrap_ir_insert and
 * wrap_ir_constant; `ir` refers to the arrays. */
typedef struct wrap_ir {
    hal_ir_kernel ir;
    hal_ir_record *records;
    hal_ir_memory *memories;
    uint64_t *constants;
} wrap_ir;

/* False when there is no host memory; then there is nothing to free. There is room for `more`
 * records and constants. */
bool wrap_ir_copy(wrap_ir *copy, const hal_ir_kernel *ir, uint32_t more);
void wrap_ir_free(wrap_ir *copy);

/* Puts a record in front of record `at`, while there is room; gives `at`, its value. What referred
 * to record `at` or a later one continues to do so. */
hal_ir_value wrap_ir_insert(wrap_ir *copy, uint32_t at, hal_ir_record record);

/* The same with a constant of these bits. */
hal_ir_value wrap_ir_constant(wrap_ir *copy, uint32_t at, hal_type type, uint64_t bits);

/* An operation on two values (HAL_IR_NONE: none). */
hal_ir_value wrap_ir_operation(wrap_ir *copy, uint32_t at, uint16_t opcode, hal_type type,
                               hal_ir_value a, hal_ir_value b);

/* ---- What is known of an object ---- */

/* A record of `bytes` zeroed bytes that goes with an object of the plugin inside, made on the first
 * call; null without host memory. Objects' addresses come back: drop it when the object goes. */
void *wrap_keep(const void *object, size_t bytes);

/* The record, or null. */
void *wrap_find(const void *object);
void wrap_drop(const void *object);

#endif

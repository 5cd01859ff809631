/* The sanitize layer: HAL_SANITIZE=bounds adds checks to kernels (ir/instrument.h) and reports what
 * they find. docs/layers.md describes it.
 *
 * The plugin compiles the kernel with checks in place of the program's, and each batch is passed to
 * it as a copy whose dispatches have the checks' binding and scalars. The host reads reports when
 * the program has waited for its batches; with shadows or `stop` it waits for each batch itself.
 * All calls but those of events are under the layer's lock. */
#ifndef HAL_SRC_LAYERS_SANITIZE_H
#define HAL_SRC_LAYERS_SANITIZE_H

#include "core/batch.h"
#include "core/hooks.h"
#include "core/kernel.h"
#include "base/text.h"
#include "ir/instrument.h"

typedef struct hal_sanitize_chunk hal_sanitize_chunk;

/* Words of mapped memory that the device writes. */
typedef struct hal_sanitize_reports {
    hal_plugin_memory *memory;
    uint64_t offset, bytes;
    uint32_t *words; /* zeros between batches */
} hal_sanitize_reports;

/* Bytes of a shadow that mean: written. */
#define HAL_SANITIZE_WRITTEN UINT32_C(0x01010101)

/* The red zone of an allocation: bytes that follow it, from a multiple of 4 on, and their words. */
#define HAL_SANITIZE_ZONE_BYTES 64u
#define HAL_SANITIZE_ZONE UINT32_C(0x7a0be5a5)

/* A fill of part of a shadow, which the next batch begins with. */
typedef struct hal_sanitize_fill {
    hal_plugin_memory *memory;
    uint64_t offset, length;
    uint32_t bits;
} hal_sanitize_fill;

/* A fill that comes before a command of a batch. */
typedef struct hal_sanitize_clear {
    const hal_recording *batch;
    uint32_t command;
    hal_sanitize_fill fill;
} hal_sanitize_clear;

/* The calls that a command of a batch came from. */
typedef struct hal_sanitize_calls {
    const hal_recording *batch;
    uint32_t command;
    char *words;
} hal_sanitize_calls;

/* A batch that the plugin has, whose reports are to be read. */
typedef struct hal_sanitize_batch {
    hal_queue *queue;
    uint64_t value;             /* of its point */
    hal_recording *recording;   /* the program's, or its copy */
    const hal_recording *given; /* the copy */
    uint32_t first;             /* of the recording's commands is the program's first one */
    bool is_submitted;
} hal_sanitize_batch;

/* Batches in flight, at most. */
#define HAL_SANITIZE_FLIGHT 16u

typedef struct hal_sanitize_device {
    hal_device *device;
    hal_device_info info; /* with the room that checks take from programs */
    hal_sanitize_chunk *chunks;
    hal_sanitize_fill *pending;
    uint32_t pending_count, pending_capacity;
    hal_sanitize_clear *clears;
    uint32_t clear_count, clear_capacity;
    hal_sanitize_calls *calls;
    uint32_t call_count, call_capacity;
    bool has_shadows; /* of what was written */
    bool has_zones;
    bool waits; /* for each batch */
    hal_sanitize_batch flight[HAL_SANITIZE_FLIGHT];
    uint32_t flight_count;
    hal_sanitize_reports *spares; /* of kernels and memory that were freed */
    uint32_t spare_count, spare_capacity;
} hal_sanitize_device;

/* Memory that the host does not map. */
typedef struct hal_sanitize_memory {
    hal_sanitize_device *device;
    hal_plugin_memory *memory;
    hal_plugin_memory *shadow; /* HAL_IR_SHADOW_WRITTEN; null: not checked */
    uint64_t bytes;
    bool is_new; /* of a buffer that nothing has used yet; before, it may have been another one's */
    hal_sanitize_reports
        zone; /* where its red zone is copied to; no words: it has none, or is bad */
} hal_sanitize_memory;

/* Words of the HAL_IR_SHADOW_ACCESSED of a queue's dispatches, one after the other. */
typedef struct hal_sanitize_users hal_sanitize_users;
struct hal_sanitize_users {
    hal_sanitize_users *smaller; /* those that the batch in the making used before */
    hal_sanitize_device *device;
    hal_plugin_memory *memory;
    uint64_t bytes;
};

typedef struct hal_sanitize_kernel {
    hal_sanitize_device *device;
    hal_ir_kernel *built; /* without checks */
    uint64_t hash[2];     /* of it: names the kernel in the places of findings */
    hal_ir_instrumented checked;
    uint32_t scalar_bytes; /* of the kernel with checks */
    hal_sanitize_reports reports;
    uint64_t *totals; /* faults of each site */
    uint64_t reading; /* the last one of its reports */
} hal_sanitize_kernel;

/* ---- sanitize_kernel.c ---- */

/* The kernel with checks that the plugin has as `handle`; null if it has none. Take removes it;
 * put returns 0 without host memory. Free takes null. */
hal_sanitize_kernel *hal_sanitize_kernel_find(const hal_plugin_kernel *handle);
hal_sanitize_kernel *hal_sanitize_kernel_take(const hal_plugin_kernel *handle);
bool hal_sanitize_kernel_put(const hal_plugin_kernel *handle, hal_sanitize_kernel *kernel);
void hal_sanitize_kernel_free(hal_sanitize_kernel *kernel);

/* Removes a kernel of the device; null if there is none. */
hal_sanitize_kernel *hal_sanitize_kernel_take_of(const hal_sanitize_device *device);

/* ---- sanitize_calls.c ---- */

/* The words of the calls that record on a queue from now on; null: of none. Without host memory
 * there are none. */
void hal_sanitize_calls_set(const hal_queue *queue, const char *words);

/* The last command of a batch in recording is of the queue's calls. */
void hal_sanitize_calls_note(hal_sanitize_device *device, const hal_queue *queue,
                             const hal_recording *batch);

/* The words of a command; null: not known. */
const char *hal_sanitize_calls_find(const hal_sanitize_device *device, const hal_recording *batch,
                                    uint32_t command);

/* The words of a batch are from now on those of its copy. */
void hal_sanitize_calls_move(hal_sanitize_device *device, const hal_recording *batch,
                             const hal_recording *copy);

/* Forgets a batch that has ended; null: all of the device. */
void hal_sanitize_calls_forget(hal_sanitize_device *device, const hal_recording *batch);

/* The name of the first command of each batch of a queue; the others follow. They are the same in
 * all batches, so that a plugin knows a batch that comes again; of two queues they differ but for
 * rare ones, with which a finding may name the wrong command. */
uint32_t hal_sanitize_first_name(const hal_queue *queue);

/* ---- sanitize_batch.c ---- */

/* Copies a batch for the plugin: dispatches of kernels with checks get their bindings and scalars,
 * and shadows follow what commands do to memory. *copy is null if the plugin gets the batch itself.
 * Free by hal_recording_destroy. Without shadows its commands from *first on are the batch's.
 * Errors: OUT_OF_MEMORY. */
hal_status hal_sanitize_copy_batch(const hal_event *event, hal_sanitize_device *device,
                                   hal_recording **copy, uint32_t *first);

/* ---- sanitize_flight.c ---- */

/* The copy is about to be submitted, and is destroyed when its reports are read. There is room. */
void hal_sanitize_flight_add(hal_sanitize_device *device, const hal_event *event,
                             hal_recording *copy, uint32_t first);

/* It was submitted, or not. False: it is not in flight. */
bool hal_sanitize_flight_begin(hal_sanitize_device *device, const hal_recording *copy,
                               hal_status status);

/* Waits for all batches in flight but those that other threads are submitting, and reads their
 * reports. Those of a lost device are dropped. */
void hal_sanitize_flight_read(hal_sanitize_device *device);

/* ---- sanitize_shadow.c ---- */

/* Memory that the host does not map was allocated, and is about to be freed. It gets a shadow where
 * the device has them, of bytes that were not written. Null, with a warning, without host memory.
 * */
hal_sanitize_memory *hal_sanitize_memory_made(hal_sanitize_device *device,
                                              hal_plugin_memory *memory, uint64_t bytes);
void hal_sanitize_memory_freeing(const hal_plugin_memory *memory);

/* Null: other memory. */
hal_sanitize_memory *hal_sanitize_memory_find(const hal_plugin_memory *memory);

/* The fill that lets bytes of memory with a shadow count as written, or not; with them those that
 * share a word. */
hal_sanitize_fill hal_sanitize_written_fill(const hal_sanitize_memory *memory, uint64_t offset,
                                            uint64_t length, bool written);

/* The next batch begins with the fill. False without host memory. */
bool hal_sanitize_fill_later(hal_sanitize_device *device, hal_sanitize_fill fill);

/* From the next batch on the bytes count as written, or not. */
void hal_sanitize_written_set(hal_sanitize_memory *memory, uint64_t offset, uint64_t length,
                              bool written);

/* The last command of a batch in recording uses new memory: before it nothing of it is written.
 * Earlier commands may use the memory for its last buffer. */
void hal_sanitize_memory_used(hal_sanitize_memory *memory, const hal_recording *batch);

/* The memory has no shadow any more: others may write it. */
void hal_sanitize_shadow_drop(hal_sanitize_memory *memory);

/* The same of all memory of the device: a batch that should have changed shadows did not run. */
void hal_sanitize_shadows_give_up(const hal_sanitize_device *device);

/* The queue's words, at least `bytes`, with any contents; null without memory. Only the batch in
 * the making uses them, until hal_sanitize_users_trim after its end. */
hal_plugin_memory *hal_sanitize_users_take(hal_sanitize_device *device, const hal_queue *queue,
                                           uint64_t bytes);
void hal_sanitize_users_trim(const hal_queue *queue);

/* Frees all of a device that is being closed. */
void hal_sanitize_shadows_free(hal_sanitize_device *device);

/* ---- sanitize_zone.c ---- */

/* Gives new memory its red zone, and takes the zone of memory that is being freed. */
void hal_sanitize_zone_begin(hal_sanitize_memory *memory);
void hal_sanitize_zone_end(hal_sanitize_memory *memory);

/* Appends copies of red zones to the copy of a batch: of the memory that commands without checks
 * use. Errors: OUT_OF_MEMORY. */
hal_status hal_sanitize_zones_copy(const hal_recording *batch, hal_recording *copy);

/* Logs red zones that batches have copied and that were written, once each. The batches have
 * ended. */
void hal_sanitize_zones_read(const hal_sanitize_batch *batches, uint32_t count);

/* ---- sanitize_report.c ---- */

/* Makes what the device wrote visible. */
bool hal_sanitize_reports_invalidate(const hal_sanitize_device *device,
                                     const hal_sanitize_reports *reports, uint64_t bytes);

/* Appends "batch 7 of cpu:0", or "batches 7 to 9 of cpu:0" where the last is after the first. */
void hal_sanitize_text_add_batches(hal_text *text, const hal_sanitize_device *device,
                                   uint64_t first, uint64_t last);

/* The text of a finding that is logged is kept if it is the first one. */
void hal_sanitize_finding_log(const char *text);

/* Zeroed words for that many bytes of reports, until they are given back or the device is closed.
 * Errors: those of the plugin. */
hal_status hal_sanitize_reports_take(hal_sanitize_device *device, uint64_t bytes,
                                     hal_sanitize_reports *reports);

/* Keeps words for the next ones of that size. Reports without words are accepted. */
void hal_sanitize_reports_give(hal_sanitize_device *device, hal_sanitize_reports *reports);

/* Frees all reports of a device. */
void hal_sanitize_reports_free(hal_sanitize_device *device);

/* Logs what the kernels of batches that have ended have reported, and clears it. */
void hal_sanitize_reports_read(const hal_sanitize_device *device, const hal_sanitize_batch *batches,
                               uint32_t count);

/* Logs how often each fault was counted, where it was more than once. */
void hal_sanitize_log_totals(const hal_sanitize_kernel *kernel);

/* The text of the first finding; "" before. */
const char *hal_sanitize_first_finding(void);

#endif

/* The validate layer, as the sources that programs call see it: HAL_LAYERS=validate watches the
 * calls of programs for what the fast path does not check. docs/layers.md says what it finds.
 *
 * Each hook costs one load where the layer is off. What is certainly wrong is refused with a
 * status; every finding is counted and logged, once for its place. */
#ifndef HAL_SRC_LAYERS_VALIDATE_H
#define HAL_SRC_LAYERS_VALIDATE_H

#include "layer.h"

enum { /* kinds of objects */
    HAL_OBJECT_DEVICE,
    HAL_OBJECT_BUFFER,
    HAL_OBJECT_KERNEL,
    HAL_OBJECT_QUEUE,
    HAL_OBJECT_GRAPH,
    HAL_OBJECT_KIND_COUNT
};

/* ---- Lives: validate_objects.c ---- */

/* The program has one more reference to an object, which may be new. `name` is copied. */
void hal_validate_made(uint32_t kind, const void *object, const hal_device *device,
                       const char *name, uint64_t bytes);

void hal_validate_device_made(const hal_device *device);

/* Errors: INVALID_STATE for an object that was released, INVALID_ARGUMENT for what is none. Null is
 * let through. */
hal_status hal_validate_use(uint32_t kind, const void *object, const char *call);

/* Counts the program's references. Errors: as hal_validate_use; the call has to do nothing then. */
hal_status hal_validate_retain(uint32_t kind, const void *object, const char *call);
hal_status hal_validate_release(uint32_t kind, const void *object, const char *call);

void hal_validate_label(const void *buffer, const char *label);

/* Keeps the description of an object that hal has no use for any more, so that a later use of it is
 * seen; the oldest ones are disposed of. */
void hal_validate_retire(uint32_t kind, void *object, uint64_t bytes, void (*dispose)(void *));

/* The thread's call on a queue or graph begins. Errors: as hal_validate_use; INVALID_STATE while
 * another thread is inside a call on it. */
hal_status hal_validate_enter(uint32_t kind, const void *object, const char *call);
void hal_validate_leave(uint32_t kind, const void *object);

/* ---- Memory: validate_memory.c ---- */

/* What the kernel of a matrix product needs of its bindings. */
void hal_validate_gemm_made(const hal_kernel *kernel, const hal_gemm_description *description,
                            uint64_t workspace_bytes);

/* The objects of a dispatch, and the bindings of a matrix product. Errors: as hal_validate_use,
 * INVALID_ARGUMENT for a binding that is too small. */
hal_status hal_validate_dispatch(const hal_kernel *kernel, const hal_range *bindings,
                                 uint32_t binding_count);

/* ---- Order and contents: validate_order.c ---- */

/* A command was recorded on the queue. */
void hal_validate_record(const hal_queue *queue, const hal_action *action);

/* The host itself reads or writes a range in the queue's order. */
void hal_validate_host_access(const hal_queue *queue, const hal_range *range, uint32_t access);

/* A batch of the queue was handed over as `value`, or dropped. */
void hal_validate_flushed(const hal_queue *queue, uint64_t value, hal_status status);

/* A queue comes after a point; the host does, where queue is null. */
void hal_validate_waited(const hal_queue *queue, hal_point point);

void hal_validate_mapped(const hal_buffer *buffer);
void hal_validate_unmapped(const hal_buffer *buffer);

/* ---- Findings: validate_findings.c ---- */

/* A plugin's finding. */
void hal_validate_report(const char *message);

/* ---- The same, where the layer is on ---- */

static inline hal_status hal_check_use(uint32_t kind, const void *object, const char *call)
{
    return hal_layers_on(HAL_LAYER_VALIDATE) ? hal_validate_use(kind, object, call) : HAL_OK;
}

static inline hal_status hal_check_enter(uint32_t kind, const void *object, const char *call)
{
    return hal_layers_on(HAL_LAYER_VALIDATE) ? hal_validate_enter(kind, object, call) : HAL_OK;
}

/* Gives `status` back. */
static inline hal_status hal_check_leave(uint32_t kind, const void *object, hal_status status)
{
    if (hal_layers_on(HAL_LAYER_VALIDATE)) {
        hal_validate_leave(kind, object);
    }
    return status;
}

static inline void hal_check_retire(uint32_t kind, void *object, uint64_t bytes,
                                    void (*dispose)(void *))
{
    if (hal_layers_on(HAL_LAYER_VALIDATE)) {
        hal_validate_retire(kind, object, bytes, dispose);
    } else {
        dispose(object);
    }
}

#endif

/* The validate layer's hooks: HAL_LAYERS=validate checks the calls of programs for what the fast
 * path does not check. docs/layers.md lists its findings; core/hooks.h describes each hook.
 *
 * Certain errors return a status. Every finding is counted, and logged once per place. */
#ifndef HAL_SRC_LAYERS_VALIDATE_H
#define HAL_SRC_LAYERS_VALIDATE_H

#include "core/hooks.h"

/* ---- Lifetimes: validate_objects.c ---- */

void hal_validate_object_created(hal_object_kind kind, const void *object, const hal_device *device,
                                 const char *name, uint64_t bytes);
hal_status hal_validate_object_use(hal_object_kind kind, const void *object, const char *call);
hal_status hal_validate_object_retain(hal_object_kind kind, const void *object, const char *call);
hal_status hal_validate_object_release(hal_object_kind kind, const void *object, const char *call);
hal_status hal_validate_object_enter(hal_object_kind kind, const void *object, const char *call);
void hal_validate_object_leave(hal_object_kind kind, const void *object);
void hal_validate_object_retire(hal_object_kind kind, void *object, uint64_t bytes,
                                void (*dispose)(void *));
void hal_validate_buffer_labelled(const hal_buffer *buffer, const char *label);

/* ---- Memory: validate_memory.c ---- */

void hal_validate_gemm_created(const hal_kernel *kernel, const hal_gemm_description *description,
                               uint64_t workspace_bytes);
void hal_validate_attention_created(const hal_kernel *kernel,
                                    const hal_attention_description *description);
hal_status hal_validate_dispatch(const hal_kernel *kernel, const hal_range *bindings,
                                 uint32_t binding_count);

/* ---- Order and contents: validate_order.c ---- */

void hal_validate_command_recorded(const hal_queue *queue, const hal_action *action);
void hal_validate_host_access(const hal_queue *queue, const hal_range *range, uint32_t access);
void hal_validate_batch_flushed(const hal_queue *queue, uint64_t value, hal_status status);
void hal_validate_point_waited(const hal_queue *queue, hal_point point);
void hal_validate_queue_describe(const hal_queue *queue, char *text, size_t bytes);
void hal_validate_cycle_found(const char *text, bool is_certain);
void hal_validate_buffer_mapped(const hal_buffer *buffer);
void hal_validate_buffer_unmapped(const hal_buffer *buffer);

#endif

/* Collectives over lists of tensors, see comm.h. Small tensors are copied to a bucket, which is
 * reduced at once. */
#include "comm.h"

#define BUCKET_ALIGNMENT UINT64_C(256) /* bytes; tensors begin at multiples of it in a bucket */

/* A collective over a list in recording. */
typedef struct group_list {
    hal_comm *comm;
    hal_queue *queue;
    hal_collective what;
    const ops_tensor *sources, *results; /* of equal types and sizes; may be the same */
    uint64_t bucket_bytes;
} group_list;

static uint64_t tensor_bytes(const ops_tensor *tensor)
{
    return (uint64_t)ops_tensor_get_element_count(tensor) * hal_type_size(tensor->type);
}

static hal_range tensor_range(const ops_tensor *tensor)
{
    return (hal_range){tensor->buffer, (uint64_t)tensor->offset * hal_type_size(tensor->type),
                       tensor_bytes(tensor)};
}

static uint64_t place_bytes(const ops_tensor *tensor)
{
    return (tensor_bytes(tensor) + BUCKET_ALIGNMENT - 1) / BUCKET_ALIGNMENT * BUCKET_ALIGNMENT;
}

/* Whether a tensor may be copied to a bucket; the same on all ranks. */
static bool tensor_is_small(const group_list *list, const ops_tensor *tensor)
{
    return tensor_bytes(tensor) % 4 == 0 && place_bytes(tensor) <= list->bucket_bytes / 2;
}

static hal_status collective_record(const group_list *list, hal_type type, hal_range source,
                                    hal_range result)
{
    hal_collective what = list->what;
    what.type = type;
    return hal_queue_collective(list->queue, list->comm, &what, source, result,
                                result.length / hal_type_size(type));
}

/* Copies sources to their places in the bucket, or results from there. */
static hal_status bucket_copy(const group_list *list, uint32_t first, uint32_t end,
                              hal_buffer *bucket, int to_bucket)
{
    hal_status status = HAL_OK;
    uint64_t at = 0;
    const ops_tensor *tensors = to_bucket ? list->sources : list->results;
    for (uint32_t i = first; status == HAL_OK && i < end; i++) {
        const hal_range tensor = tensor_range(&tensors[i]);
        const hal_range place = {bucket, at, tensor.length};
        if (tensor.length > 0) {
            status = to_bucket ? hal_queue_copy(list->queue, tensor, place)
                               : hal_queue_copy(list->queue, place, tensor);
        }
        at += place_bytes(&tensors[i]);
    }
    return status;
}

/* The places between tensors are reduced as well, and never read. */
static hal_status bucket_record(const group_list *list, uint32_t first, uint32_t end,
                                uint64_t bytes)
{
    hal_buffer *bucket = NULL;
    if (bytes == 0) {
        return HAL_OK;
    }
    hal_status status =
        hal_buffer_create(hal_queue_get_device(list->queue), HAL_MEMORY_DEVICE, bytes, &bucket);
    if (status == HAL_OK) {
        status = hal_queue_fill(list->queue, (hal_range){bucket, 0, bytes}, 0);
    }
    if (status == HAL_OK) {
        status = bucket_copy(list, first, end, bucket, 1);
    }
    if (status == HAL_OK) {
        const hal_range all = {bucket, 0, bytes};
        status = collective_record(list, list->sources[first].type, all, all);
    }
    if (status == HAL_OK) {
        status = bucket_copy(list, first, end, bucket, 0);
    }
    hal_buffer_release(bucket);
    return status;
}

static hal_status list_record(const group_list *list, uint32_t count)
{
    hal_status status = HAL_OK;
    for (uint32_t i = 0; status == HAL_OK && i < count;) {
        const ops_tensor *first = &list->sources[i];
        uint64_t bytes = 0;
        uint32_t end = i;
        while (end < count && list->sources[end].type == first->type &&
               tensor_is_small(list, &list->sources[end]) &&
               bytes + place_bytes(&list->sources[end]) <= list->bucket_bytes) {
            bytes += place_bytes(&list->sources[end++]);
        }
        if (end > i + 1) {
            status = bucket_record(list, i, end, bytes);
            i = end;
        } else {
            status = collective_record(list, first->type, tensor_range(first),
                                       tensor_range(&list->results[i]));
            i++;
        }
    }
    return status;
}

/* Makes `queue` run after the context's earlier work. */
static hal_status queue_follow(ops_context *context, hal_queue *queue)
{
    hal_point point = {0};
    hal_status status = hal_queue_flush(ops_context_get_queue(context), &point);
    return status == HAL_OK ? hal_queue_wait_point(queue, point) : status;
}

static hal_status tensors_check(const char *function, const ops_context *context,
                                const ops_tensor *tensors, uint32_t count)
{
    const hal_device *device = ops_context_get_device(context);
    if (count > 0 && !tensors) {
        return ops_invalid("%s: tensors: expected a value, got null", function);
    }
    for (uint32_t i = 0; i < count; i++) {
        const ops_tensor *tensor = &tensors[i];
        if (!tensor->buffer || hal_buffer_get_device(tensor->buffer) != device ||
            !ops_comm_takes_tensor(tensor)) {
            return ops_invalid("%s: tensors[%u]: expected a contiguous tensor of the context's "
                               "device at a multiple of 4 bytes, got %s",
                               function, i, !tensor->buffer ? "none" : "another");
        }
    }
    return HAL_OK;
}

static hal_status tensors_run(const char *function, ops_context *context, hal_comm *comm,
                              hal_collective what, const ops_tensor *tensors, uint32_t count,
                              const ops_comm_options *options)
{
    bool is_alone = false;
    hal_status status = ops_comm_check(function, context, comm, options, &is_alone);
    if (status == HAL_OK) {
        status = tensors_check(function, context, tensors, count);
    }
    return status != HAL_OK || is_alone
               ? status
               : ops_comm_record(context, comm, what, tensors, tensors, count, options);
}

hal_collective ops_comm_reduction(uint32_t reduction, const ops_comm_options *options)
{
    return (hal_collective){.kind = HAL_COLLECTIVE_ALL_REDUCE,
                            .reduction = reduction,
                            .any_order = options && options->size >= sizeof *options &&
                                         options->any_order != 0};
}

bool ops_comm_takes_tensor(const ops_tensor *tensor)
{
    return ops_tensor_is_contiguous(tensor) && tensor_range(tensor).offset % 4 == 0;
}

hal_status ops_comm_check(const char *function, const ops_context *context, hal_comm *comm,
                          const ops_comm_options *options, bool *is_alone)
{
    hal_comm_status group_status;
    if (!context || !comm) {
        return ops_invalid("%s: %s: expected a value, got null", function,
                           !context ? "context" : "comm");
    }
    if (options && options->size < sizeof(ops_comm_options)) {
        return ops_invalid("%s: options.size: expected sizeof(ops_comm_options), got %u", function,
                           options->size);
    }
    hal_status status = hal_comm_get_status(comm, &group_status);
    *is_alone = status == HAL_OK && group_status.count == 1 && group_status.status == HAL_OK;
    return status;
}

hal_status ops_comm_record(ops_context *context, hal_comm *comm, hal_collective what,
                           const ops_tensor *sources, const ops_tensor *results, uint32_t count,
                           const ops_comm_options *options)
{
    hal_queue *own = ops_context_get_queue(context);
    group_list list = {.comm = comm,
                       .queue = options && options->queue ? options->queue : own,
                       .what = what,
                       .sources = sources,
                       .results = results,
                       .bucket_bytes = options && options->bucket_bytes ? options->bucket_bytes
                                                                        : OPS_COMM_BUCKET_BYTES};
    hal_status status = list.queue == own ? HAL_OK : queue_follow(context, list.queue);
    if (status == HAL_OK) {
        status = list_record(&list, count);
    }
    if (status != HAL_OK) { /* the other ranks must not wait for the rest of the list */
        hal_comm_abort(comm, hal_status_message());
    }
    return status;
}

hal_status ops_comm_all_reduce(ops_context *context, hal_comm *comm, uint32_t reduction,
                               const ops_tensor *tensors, uint32_t count,
                               const ops_comm_options *options)
{
    const hal_collective what = ops_comm_reduction(reduction, options);
    return tensors_run("ops_comm_all_reduce", context, comm, what, tensors, count, options);
}

hal_status ops_comm_broadcast(ops_context *context, hal_comm *comm, uint32_t root,
                              const ops_tensor *tensors, uint32_t count,
                              const ops_comm_options *options)
{
    const hal_collective what = {.kind = HAL_COLLECTIVE_BROADCAST, .root = root};
    return tensors_run("ops_comm_broadcast", context, comm, what, tensors, count, options);
}

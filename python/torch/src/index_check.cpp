#include "index_check.h"

#include <c10/util/Exception.h>

namespace halyard
{
namespace
{

uint32_t losses_of(const Device &device)
{
    return __atomic_load_n(hal_queue_get_loss_count(device.queue), __ATOMIC_RELAXED);
}

} // namespace

void require_indices(const Array &indices, int64_t device_index, int64_t length, int64_t low)
{
    Device &device = device_at(device_index);
    if (device.records_graph || indices.count() == 0) {
        return;
    }
    const Array outside =
        either(less(indices, (double)low), greater_equal(indices, (double)length));
    Array failed = reduce(OPS_REDUCE_MAX, flatten(cast(outside, HAL_TYPE_I32)), 0, false);
    if (device.failed_index) {
        const Array before(std::exchange(device.failed_index, nullptr));
        ops_array *both = ops_array_binary(OPS_MAXIMUM, before, failed);
        failed = both ? Array(both) : failed; // the tests before were lost with their batch
    }
    device.failed_index = failed.release();
    if (mode() == Mode::BLOCKING) {
        check_indices(device);
    }
}

void begin_index_check(Device &device)
{
    if (!device.failed_index || device.records_graph || device.has_index_result) {
        return;
    }
    const Array failed(std::exchange(device.failed_index, nullptr));
    ops_tensor tensor;
    const hal_status status = ops_array_get_tensor(failed, &tensor);
    if (status == HAL_ERROR_INVALID_STATE) {
        return; // lost with the batch of the operations
    }
    check(status);
    if (!device.index_result) {
        check(hal_buffer_create(device.device, HAL_MEMORY_DOWNLOAD, sizeof(int32_t),
                                &device.index_result));
    }
    const uint64_t offset = (uint64_t)tensor.offset * sizeof(int32_t);
    check(hal_queue_copy(device.queue, hal_range{tensor.buffer, offset, sizeof(int32_t)},
                         hal_range{device.index_result, 0, sizeof(int32_t)}));
    device.index_losses = losses_of(device);
    device.has_index_result = true;
}

void check_indices(Device &device)
{
    for (begin_index_check(device); device.has_index_result; begin_index_check(device)) {
        device.has_index_result = false;
        void *result;
        check(hal_queue_wait(device.queue, HAL_WAIT_FOREVER));
        if (losses_of(device) != device.index_losses) {
            continue; // the copy may have been lost, which another call was told
        }
        check(hal_buffer_map_begin(device.index_result, &result));
        const int32_t value = *static_cast<const int32_t *>(result);
        check(hal_buffer_map_end(device.index_result));
        TORCH_CHECK_INDEX(value == 0,
                          "halyard: an index was out of range in an operation since the last read; "
                          "HALYARD_TORCH=blocking raises this error at the operation");
    }
}

} // namespace halyard

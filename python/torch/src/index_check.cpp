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

// Whether the copy of the result, or something that it read, was lost with its batch.
bool is_result_lost(const Device &device)
{
    hal_loss loss;
    if (losses_of(device) == device.index_losses) {
        return false;
    }
    check(hal_queue_get_loss(device.queue, device.index_losses, &loss));
    return loss.batch <= device.index_batch;
}

// The test of two tests. One that was lost with its batch has no result: the calls of that batch
// have failed.
Array either_failed(Device &device, Array later)
{
    if (!device.failed_index) {
        return later;
    }
    ops_tensor tensor;
    ops_array *both = ops_array_binary(OPS_MAXIMUM, device.failed_index, later);
    const std::string message = both ? "" : hal_status_message();
    if (!both && ops_array_get_tensor(device.failed_index, &tensor) != HAL_ERROR_INVALID_STATE) {
        throw Unsupported(message); // the tests before are kept
    }
    ops_array_release(std::exchange(device.failed_index, nullptr));
    return both ? Array(both) : later;
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
    device.failed_index = either_failed(device, std::move(failed)).release();
    if (mode() == Mode::BLOCKING) {
        check_indices(device);
    }
}

void begin_index_check(Device &device)
{
    if (!device.failed_index || device.records_graph || device.has_index_result) {
        return;
    }
    ops_tensor tensor;
    const auto losses = losses_of(device); // before: a loss in between counts
    const hal_status status = ops_array_get_tensor(device.failed_index, &tensor);
    if (status == HAL_ERROR_INVALID_STATE) { // lost with the batch of the operations
        ops_array_release(std::exchange(device.failed_index, nullptr));
        return;
    }
    check(status);
    if (!device.index_result) {
        check(hal_buffer_create(device.device, HAL_MEMORY_DOWNLOAD, sizeof(int32_t),
                                &device.index_result));
    }
    const uint64_t offset = (uint64_t)tensor.offset * sizeof(int32_t);
    check(hal_queue_copy(device.queue, hal_range{tensor.buffer, offset, sizeof(int32_t)},
                         hal_range{device.index_result, 0, sizeof(int32_t)}));
    ops_array_release(std::exchange(device.failed_index, nullptr));
    device.index_losses = losses;
    device.index_batch = hal_queue_get_batch(device.queue);
    device.has_index_result = true;
}

void check_indices(Device &device)
{
    for (begin_index_check(device); device.has_index_result; begin_index_check(device)) {
        void *result;
        check(hal_queue_wait(device.queue, HAL_WAIT_FOREVER)); // after a failure the copy is kept
        device.has_index_result = false;
        if (is_result_lost(device)) {
            continue; // another call was told
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

#include "index_check.h"

#include <c10/util/Exception.h>

namespace halyard
{

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
        failed = maximum(Array(std::exchange(device.failed_index, nullptr)), failed);
    }
    device.failed_index = failed.release();
    if (mode() == Mode::BLOCKING) {
        check_indices(device);
    }
}

void check_indices(Device &device)
{
    if (!device.failed_index || device.records_graph) {
        return;
    }
    const Array failed(std::exchange(device.failed_index, nullptr));
    int32_t value = 0;
    check(ops_array_read(failed, sizeof value, &value));
    TORCH_CHECK_INDEX(value == 0,
                      "halyard: an index was out of range in an operation since the last read; "
                      "HALYARD_TORCH=blocking raises this error at the operation");
}

} // namespace halyard

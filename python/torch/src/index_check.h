// Indices out of range. Their values are on the device, so an operator records a test and the next
// read of any value raises the error, as a device-side assertion that leaves the device usable.
// HALYARD_TORCH=blocking raises it at the call. Under the lock of runtime.h.
#pragma once

#include "array.h"
#include "runtime.h"

namespace halyard
{

// Records that the indices are from `low` to length - 1.
void require_indices(const Array &indices, int64_t device, int64_t length, int64_t low = 0);
// Records a copy of the tests' result to the host, so that a read that follows and check_indices
// take one wait together.
void begin_index_check(Device &device);
// Raises IndexError if a recorded test failed, and forgets the tests. Waits for the device.
void check_indices(Device &device);

} // namespace halyard

// Reading a storage through the shape, strides and offset of a tensor.
#pragma once

#include <c10/util/ArrayRef.h>

#include "array.h"

namespace halyard
{

struct Cell;

// The elements of a cell that sizes, strides and offset (in elements of `type`) pick, as an array
// of that shape. There is at least one element. Views of deferred arrays stay deferred if ops has
// views for them; other values are computed first. Under the lock.
Array view_of(Cell *cell, hal_type type, c10::IntArrayRef sizes, c10::IntArrayRef strides,
              int64_t offset);

// The array with its axes in the order of these strides, from the largest to the smallest.
Array in_order_of_strides(const Array &array, c10::IntArrayRef strides);

} // namespace halyard

// Cells: what a storage holds. A cell has an immutable, possibly deferred array, whose elements in
// row-major order are the storage. Writing to a whole storage replaces the array; writing to a part
// makes an array with that part updated. All functions are called under the lock of runtime.h.
#pragma once

#include <ATen/core/Tensor.h>

#include "array.h"
#include "runtime.h"

namespace halyard
{

using at::IntArrayRef;
using at::ScalarType;
using at::Tensor;

struct Cell {
    ops_array *value = nullptr; // null: nothing was written yet
    size_t bytes = 0;           // of the storage
    void *address = nullptr;    // stands for the storage
    int64_t device = 0;
    bool is_deferred = false; // in the device's list of deferred cells
    bool is_read = false;     // since prepare_inputs of exchange.cpp
    Cell *next = nullptr;     // in that list
    Cell *previous = nullptr;
    Cell *garbage_next = nullptr; // in the list of cells that wait for the lock to be freed

    // A DataPtr with a new cell as its context.
    static at::DataPtr make(int64_t device, size_t bytes);
    // The deleter of such a DataPtr: any thread, with or without the lock.
    static void destroy(void *cell);
    static Cell *of(const Tensor &tensor)
    {
        return of(tensor.storage().unsafeGetStorageImpl());
    }
    static Cell *of(c10::StorageImpl *storage)
    {
        return static_cast<Cell *>(storage->mutable_data_ptr().get_context());
    }
    // Frees the cells that were destroyed while another thread had the lock.
    static void sweep();

    // The array of `type` that the storage holds, in whatever shape it has. Borrowed.
    ops_array *as(hal_type type);
    // Replaces the value.
    void set(Array array);
    void forget_deferred();
};

// The type of elements; NONE: Halyard has none (complex and quantised numbers).
hal_type type_of(ScalarType type);
ScalarType scalar_type_of(hal_type type);
inline bool is_ours(const Tensor &tensor)
{
    return tensor.device().type() == c10::DeviceType::PrivateUse1;
}
// Whether array_of works: a known type, at most OPS_MAX_RANK axes, no lazy conjugate or negative.
bool is_plain(const Tensor &tensor);

// The values of a tensor, of any strides, as an array of its shape.
Array array_of(const Tensor &tensor);
// The array of the whole storage in whatever shape it has, if the tensor covers it without gaps and
// in any order; an empty Array otherwise.
Array whole_of(const Tensor &tensor);

// y in the shape of x, which has as many elements.
Array matched(Array y, const Array &x);

// A new tensor, contiguous or with the strides of a dense one, of the array's elements.
Tensor tensor_of(Array array, int64_t device, IntArrayRef sizes, ScalarType type);
Tensor tensor_of(Array array, int64_t device);
Tensor tensor_like(Array array, const Tensor &dense);
Tensor empty_tensor(int64_t device, IntArrayRef sizes, ScalarType type);

// target = array, cast and broadcast to it; a tensor of any strides, whose elements do not overlap.
void assign(const Tensor &target, Array array);

// Another type for the same bytes; rank 1.
Array reinterpret(const Array &array, hal_type type);
// The bytes of a storage, rank 1, of U8, and the other way round.
Array bytes_of(Cell *cell);
// Makes a storage larger or smaller; the bytes that both have stay.
void resize_storage(c10::StorageImpl *storage, size_t bytes);

c10::Allocator *allocator();

} // namespace halyard

#include "cell.h"

#include <algorithm>
#include <atomic>

#include <ATen/EmptyTensor.h>
#include <ATen/MemoryOverlap.h>

#include "addresses.h"
#include "view.h"

namespace halyard
{
namespace
{

std::atomic<Cell *> garbage{nullptr}; // cells to free, a stack
Cell *spare = nullptr;                // cells that were freed, a stack as well

void free_cell(Cell *cell)
{
    cell->forget_deferred();
    if (cell->value) {
        ops_array_release(cell->value);
    }
    address_return(cell->address, cell->bytes);
    cell->garbage_next = spare;
    spare = cell;
}

// Every operator makes cells and frees others; there are no more than were alive at once.
Cell *new_cell(int64_t device, size_t bytes)
{
    Cell *cell = spare;
    if (cell) {
        spare = cell->garbage_next;
        *cell = Cell();
    } else {
        cell = new Cell;
    }
    cell->bytes = bytes;
    cell->device = device;
    return cell;
}

at::DataPtr data_of(Cell *cell)
{
    return {cell->address, cell, &Cell::destroy,
            c10::Device(c10::DeviceType::PrivateUse1, (c10::DeviceIndex)cell->device)};
}

void link_deferred(Cell *cell)
{
    if (cell->is_deferred) {
        return;
    }
    Device &device = device_at(cell->device);
    cell->is_deferred = true;
    cell->previous = nullptr;
    cell->next = device.deferred;
    if (cell->next) {
        cell->next->previous = cell;
    }
    device.deferred = cell;
}

// Nothing was written: any values will do, and those of a constant take no memory.
void give_undefined_value(Cell *cell, hal_type type)
{
    const int64_t count = (int64_t)(cell->bytes / hal_type_size(type));
    cell->value = Array(ops_array_full(context_at(cell->device), type, 1, &count, 0)).release();
}

void apply_mode(Cell *cell)
{
    if (C10_LIKELY(mode() == Mode::FUSED)) {
        return;
    }
    Device &device = device_at(cell->device);
    check(ops_array_evaluate(&cell->value, 1));
    cell->forget_deferred();
    if (mode() == Mode::BLOCKING) {
        check(hal_queue_wait(device.queue, HAL_WAIT_FOREVER));
    }
}

Tensor new_tensor(int64_t device, IntArrayRef sizes, ScalarType type, Cell **cell)
{
    int64_t count = 1;
    for (const int64_t size : sizes) {
        count *= size;
    }
    const size_t bytes = (size_t)count * c10::elementSize(type);
    at::DataPtr data = Cell::make(device, bytes);
    *cell = static_cast<Cell *>(data.get_context());
    auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                         std::move(data), allocator(), true);
    Tensor tensor = at::detail::make_tensor_base<c10::TensorImpl>(
        c10::Storage(std::move(storage)), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
        c10::scalarTypeToTypeMeta(type));
    if (sizes.size() != 1 || sizes[0] != 0) {
        tensor.unsafeGetTensorImpl()->generic_set_sizes_contiguous(sizes);
    }
    return tensor;
}

void assign_part(Cell *cell, const Tensor &target, const Array &array)
{
    at::assert_no_internal_overlap(target);
    const Array old = Array::retained(cell->as(array.type()));
    ops_tensor view;
    check(ops_array_describe(old, &view));
    view.rank = (uint32_t)target.dim();
    view.offset = target.storage_offset();
    for (int64_t i = 0; i < target.dim(); i++) {
        view.shape[i] = target.size(i);
        view.stride[i] = target.size(i) == 1 ? 0 : target.stride(i);
    }
    cell->set(Array(ops_array_update(old, &view, array)));
}

bool same_shape(const Array &a, const Array &b)
{
    if (a.rank() != b.rank()) {
        return false;
    }
    for (int64_t i = 0; i < a.rank(); i++) {
        if (a.length(i) != b.length(i)) {
            return false;
        }
    }
    return true;
}

} // namespace

// A storage takes memory when its values are computed; one that the device could not hold is refused
// when it is made, where the program expects it.
static void check_fits(int64_t device, size_t bytes)
{
    constexpr size_t ALWAYS_FITS = size_t(1) << 26;
    if (bytes <= ALWAYS_FITS) {
        return;
    }
    hal_memory_statistics memory;
    check(hal_device_get_memory(device_at(device).device, &memory));
    TORCH_CHECK_WITH(OutOfMemoryError, bytes <= memory.total_bytes, "halyard:", device,
                     ": out of memory: a storage of ", bytes, " bytes, the device has ",
                     memory.total_bytes);
}

at::DataPtr Cell::make(int64_t device, size_t bytes)
{
    Lock lock;
    device_at(device);
    check_fits(device, bytes);
    void *address = address_take(bytes);
    Cell *cell = new_cell(device, bytes);
    cell->address = address;
    return data_of(cell);
}

void Cell::destroy(void *pointer)
{
    Cell *cell = static_cast<Cell *>(pointer);
    if (try_lock()) {
        free_cell(cell);
        unlock();
        return;
    }
    Cell *head = garbage.load(std::memory_order_relaxed);
    do {
        cell->garbage_next = head;
    } while (!garbage.compare_exchange_weak(head, cell, std::memory_order_release,
                                            std::memory_order_relaxed));
}

void Cell::sweep()
{
    if (C10_LIKELY(!garbage.load(std::memory_order_relaxed))) {
        return;
    }
    Cell *cell = garbage.exchange(nullptr, std::memory_order_acquire);
    while (cell) {
        free_cell(std::exchange(cell, cell->garbage_next));
    }
}

ops_array *Cell::as(hal_type type)
{
    is_read = true;
    if (C10_UNLIKELY(!value)) {
        give_undefined_value(this, type);
    } else if (C10_UNLIKELY(ops_array_get_type(value) != type)) {
        const Array other = reinterpret(Array::retained(value), type);
        ops_array_release(value);
        value = ops_array_retain(other);
    }
    return value;
}

void Cell::set(Array array)
{
    if (value) {
        ops_array_release(value);
    }
    value = array.release();
    link_deferred(this);
    apply_mode(this);
}

void Cell::forget_deferred()
{
    if (!is_deferred) {
        return;
    }
    (previous ? previous->next : device_at(device).deferred) = next;
    if (next) {
        next->previous = previous;
    }
    next = previous = nullptr;
    is_deferred = false;
}

hal_type type_of(ScalarType type)
{
    switch (type) {
    case at::kFloat:
        return HAL_TYPE_F32;
    case at::kDouble:
        return HAL_TYPE_F64;
    case at::kHalf:
        return HAL_TYPE_F16;
    case at::kBFloat16:
        return HAL_TYPE_BF16;
    case at::kLong:
        return HAL_TYPE_I64;
    case at::kInt:
        return HAL_TYPE_I32;
    case at::kShort:
        return HAL_TYPE_I16;
    case at::kChar:
        return HAL_TYPE_I8;
    case at::kByte:
        return HAL_TYPE_U8;
    case at::kBool:
        return HAL_TYPE_BOOL;
    case at::kUInt16:
        return HAL_TYPE_U16;
    case at::kUInt32:
        return HAL_TYPE_U32;
    case at::kUInt64:
        return HAL_TYPE_U64;
    default:
        return HAL_TYPE_NONE;
    }
}

ScalarType scalar_type_of(hal_type type)
{
    static constexpr ScalarType types[] = {ScalarType::Undefined,
                                           at::kBool,
                                           at::kChar,
                                           at::kByte,
                                           at::kShort,
                                           at::kUInt16,
                                           at::kInt,
                                           at::kUInt32,
                                           at::kLong,
                                           at::kUInt64,
                                           at::kHalf,
                                           at::kBFloat16,
                                           at::kFloat,
                                           at::kDouble};
    return type < std::size(types) ? types[type] : ScalarType::Undefined;
}

bool is_plain(const Tensor &tensor)
{
    return type_of(tensor.scalar_type()) != HAL_TYPE_NONE && !tensor.is_conj() &&
           !tensor.is_neg() && tensor.dim() <= (int64_t)OPS_MAX_RANK;
}

Array array_of(const Tensor &tensor)
{
    if (!is_plain(tensor)) {
        throw Unsupported("an operand of a type that Halyard lacks, or of more than 16 axes");
    }
    TORCH_CHECK(is_ours(tensor),
                "Expected all tensors to be on the same device, but found at least "
                "two devices, halyard and ",
                tensor.device(), "!");
    const hal_type type = type_of(tensor.scalar_type());
    Cell *cell = Cell::of(tensor);
    if (tensor.numel() == 0) {
        return Array(ops_array_full(context_at(tensor.device().index()), type,
                                    (uint32_t)tensor.dim(), tensor.sizes().data(), 0));
    }
    return view_of(cell, type, tensor.sizes(), tensor.strides(), tensor.storage_offset());
}

Array whole_of(const Tensor &tensor)
{
    const hal_type type = type_of(tensor.scalar_type());
    if (!is_ours(tensor) || type == HAL_TYPE_NONE || tensor.storage_offset() != 0 ||
        tensor.numel() == 0 || !tensor.is_non_overlapping_and_dense() || tensor.is_conj() ||
        tensor.is_neg()) {
        return Array();
    }
    Cell *cell = Cell::of(tensor);
    if (cell->bytes != (size_t)tensor.numel() * tensor.itemsize()) {
        return Array();
    }
    return Array::retained(cell->as(type));
}

Array matched(Array y, const Array &x)
{
    if (same_shape(x, y)) {
        return y;
    }
    at::DimVector shape;
    for (int64_t i = 0; i < x.rank(); i++) {
        shape.push_back(x.length(i));
    }
    return reshape(y, shape);
}

Tensor empty_tensor(int64_t device, IntArrayRef sizes, ScalarType type)
{
    Cell *cell;
    return new_tensor(device, sizes, type, &cell);
}

Tensor tensor_of(Array array, int64_t device, IntArrayRef sizes, ScalarType type)
{
    Cell *cell;
    Tensor tensor = new_tensor(device, sizes, type, &cell);
    if (cell->bytes) {
        cell->set(std::move(array));
    }
    return tensor;
}

Tensor tensor_of(Array array, int64_t device)
{
    at::DimVector sizes;
    for (int64_t i = 0; i < array.rank(); i++) {
        sizes.push_back(array.length(i));
    }
    const ScalarType type = scalar_type_of(array.type());
    return tensor_of(std::move(array), device, sizes, type);
}

Tensor tensor_like(Array array, const Tensor &dense)
{
    const ScalarType type = scalar_type_of(array.type());
    Tensor tensor = tensor_of(std::move(array), dense.device().index(), dense.sizes(), type);
    if (!dense.is_contiguous()) {
        tensor.unsafeGetTensorImpl()->set_sizes_and_strides(dense.sizes(), dense.strides());
    }
    return tensor;
}

void assign(const Tensor &target, Array array)
{
    if (!is_plain(target)) {
        throw Unsupported("a result of a type that Halyard lacks, or of more than 16 axes");
    }
    TORCH_CHECK(is_ours(target),
                "Expected all tensors to be on the same device, but found at least "
                "two devices, halyard and ",
                target.device(), "!");
    if (target.numel() == 0) {
        return;
    }
    array = broadcast(cast(array, type_of(target.scalar_type())), target.sizes());
    Cell *cell = Cell::of(target);
    const bool is_whole =
        target.storage_offset() == 0 && (size_t)target.numel() * target.itemsize() == cell->bytes;
    if (is_whole && target.is_contiguous()) {
        cell->set(std::move(array));
    } else if (is_whole && target.is_non_overlapping_and_dense()) {
        cell->set(in_order_of_strides(array, target.strides()));
    } else {
        assign_part(cell, target, array);
    }
}

Array reinterpret(const Array &array, hal_type type)
{
    Array copy = Array(ops_array_copy(array));
    ops_tensor tensor;
    check(ops_array_get_tensor(copy, &tensor));
    const size_t bytes = (size_t)array.count() * hal_type_size(array.type());
    const uint32_t size = hal_type_size(type);
    const size_t offset = (size_t)tensor.offset * hal_type_size(array.type());
    TORCH_CHECK(offset % size == 0, "halyard: a view of another type that is not aligned");
    tensor.type = type;
    tensor.rank = 1;
    tensor.offset = (int64_t)(offset / size);
    tensor.shape[0] = (int64_t)(bytes / size);
    tensor.stride[0] = 1;
    return Array(ops_array_from_tensor(array.context(), &tensor));
}

Array bytes_of(Cell *cell)
{
    return flatten(Array::retained(cell->as(HAL_TYPE_U8)));
}

void resize_storage(c10::StorageImpl *storage, size_t bytes)
{
    Cell *cell = Cell::of(storage);
    const int64_t device = storage->device().index();
    at::DataPtr data = Cell::make(device, bytes);
    if (cell && cell->value && bytes) {
        Array kept = bytes_of(cell);
        const int64_t count = kept.count(), missing = (int64_t)bytes - count;
        if (missing > 0) {
            const Array zeros(ops_array_full(context_at(device), HAL_TYPE_U8, 1, &missing, 0));
            ops_array *parts[2] = {kept, zeros};
            kept = Array(ops_array_concatenate(0, parts, 2));
        } else if (missing < 0) {
            kept = slice(kept, 0, 0, (int64_t)bytes);
        }
        static_cast<Cell *>(data.get_context())->set(std::move(kept));
    }
    storage->set_data_ptr_noswap(std::move(data));
    storage->set_nbytes(bytes);
}

} // namespace halyard

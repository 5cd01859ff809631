// Copies between tensors of devices and of the processor, and single values.
#include <ATen/MemoryOverlap.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/item.h>
#include <torch/library.h>

#include "cell.h"
#include "index_check.h"

namespace halyard
{
namespace
{

// Reads an array: what it needs is computed under the lock, the wait is under
// it too, because another thread's work in the same queue must not come
// between.
void read(const Array &array, void *target)
{
    check(ops_array_read(array, (uint64_t)array.count() * hal_type_size(array.type()), target));
}

// A tensor of a type that Halyard lacks: the bytes of its storage, with the
// same strides.
Tensor storage_on_processor(const Tensor &tensor)
{
    Tensor bytes;
    {
        Cell *cell = Cell::of(tensor);
        bytes = at::empty({(int64_t)cell->bytes}, at::kByte);
        if (cell->bytes) {
            Lock lock;
            read(bytes_of(cell), bytes.mutable_data_ptr());
        }
    }
    Tensor result = at::empty({0}, tensor.options().device(at::kCPU));
    result.set_(bytes.storage(), tensor.storage_offset(), tensor.sizes(), tensor.strides());
    if (tensor.is_conj()) {
        result = result.conj();
    }
    return tensor.is_neg() ? result._neg_view() : result;
}

Tensor to_processor(const Tensor &tensor)
{
    if (!is_plain(tensor)) {
        return storage_on_processor(tensor);
    }
    Tensor result = at::empty(tensor.sizes(), tensor.options().device(at::kCPU));
    if (tensor.numel()) {
        Lock lock;
        Device &device = device_at(tensor.device().index());
        begin_index_check(device);
        read(array_of(tensor), result.mutable_data_ptr());
        check_indices(device);
    }
    return result;
}

// Writes to a tensor of a type that Halyard lacks: by way of its whole storage
// on the processor.
void write_bytes(const Tensor &target, const Tensor &source)
{
    Tensor whole = storage_on_processor(target);
    whole.copy_(source);
    const int64_t bytes = (int64_t)whole.storage().nbytes();
    Lock lock;
    Cell *cell = Cell::of(target);
    cell->set(Array(ops_array_from_host(context_at(cell->device), HAL_TYPE_U8, 1, &bytes,
                                        whole.storage().data())));
}

void from_processor(const Tensor &source, const Tensor &target)
{
    const Tensor values = source.to(target.scalar_type()).contiguous().resolve_conj().resolve_neg();
    Lock lock;
    assign(target, Array(ops_array_from_host(context_at(target.device().index()),
                                             type_of(target.scalar_type()), (uint32_t)values.dim(),
                                             values.sizes().data(), values.const_data_ptr())));
}

// Arrays are immutable, so a copy of a whole storage shares its array. That of
// a part does not, or it would keep the memory of the whole alive.
void on_device(const Tensor &source, const Tensor &target)
{
    at::assert_no_partial_overlap(target, source);
    Lock lock;
    Array array = array_of(source);
    if ((size_t)source.numel() * source.itemsize() < Cell::of(source)->bytes) {
        array = Array(ops_array_copy(array));
    }
    assign(target, std::move(array));
}

Tensor copy_from(const Tensor &self, const Tensor &target, bool)
{
    if (target.numel() == 0) {
        return target;
    }
    if (!is_ours(target)) {
        const_cast<Tensor &>(target).copy_(to_processor(self));
    } else if (!is_plain(target) || (is_ours(self) && !is_plain(self))) {
        const Tensor source = is_ours(self) ? to_processor(self) : self;
        if (is_plain(target)) {
            from_processor(source.expand(target.sizes()), target);
        } else {
            write_bytes(target, source);
        }
    } else if (!is_ours(self)) {
        from_processor(self.is_cpu() ? self : self.cpu(), target);
    } else if (self.device() != target.device()) {
        from_processor(to_processor(self), target);
    } else {
        on_device(self, target);
    }
    return target;
}

Tensor copy_from_and_resize(const Tensor &self, const Tensor &target)
{
    at::native::resize_output(target, self.sizes());
    return copy_from(self, target, false);
}

at::Scalar local_scalar(const Tensor &self)
{
    return to_processor(self).item();
}

// Whether all elements are equal, without a copy of the operands to the
// processor.
bool equal_tensors(const Tensor &x, const Tensor &y)
{
    TORCH_CHECK(x.device() == y.device() && x.scalar_type() == y.scalar_type(),
                "Cannot compare two tensors on different devices or of different types");
    if (x.sizes() != y.sizes()) {
        return false;
    }
    if (x.numel() == 0) {
        return true;
    }
    if (!is_plain(x) || !is_plain(y)) {
        return to_processor(x).equal(to_processor(y));
    }
    int32_t differs = 0;
    Lock lock;
    const Array unequal = cast(not_equal(array_of(x), array_of(y)), HAL_TYPE_I32);
    read(reduce(OPS_REDUCE_MAX, flatten(unequal), 0, false), &differs);
    return differs == 0;
}

// Arrays are immutable, so that every clone copies nothing until one of both is written.
Tensor lazy_clone(const Tensor &self)
{
    return self.clone();
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    library.impl("_lazy_clone", lazy_clone);
    library.impl("equal", equal_tensors);
    library.impl("_copy_from", copy_from);
    library.impl("_copy_from_and_resize", copy_from_and_resize);
    library.impl("_local_scalar_dense", local_scalar);
}

// The fallbacks of these keys clone, which copies, which would come back to
// them without end.
TORCH_LIBRARY_IMPL(aten, Conjugate, library)
{
    library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, library)
{
    library.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

} // namespace
} // namespace halyard

// The operators that PyTorch requires of a device: making, viewing and resizing tensors.
#include <ATen/EmptyTensor.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_cpu_dispatch.h>
#include <ATen/ops/set_cpu_dispatch.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "cell.h"

namespace halyard
{
namespace
{

using c10::SymInt;
using c10::SymIntArrayRef;

constexpr c10::DispatchKeySet KEYS(c10::DispatchKey::PrivateUse1);

// Makes a device current while its storage is allocated.
struct DeviceScope {
    int64_t old = current_device();
    explicit DeviceScope(const std::optional<c10::Device> &device)
    {
        if (device && device->has_index()) {
            set_current_device(device->index());
        }
    }
    ~DeviceScope()
    {
        set_current_device(old);
    }
};

Tensor empty(IntArrayRef size, std::optional<ScalarType> type, std::optional<c10::Layout>,
             std::optional<c10::Device> device, std::optional<bool>,
             std::optional<c10::MemoryFormat> format)
{
    DeviceScope scope(device);
    return at::detail::empty_generic(size, allocator(), KEYS, c10::dtype_or_default(type), format);
}

Tensor empty_strided(IntArrayRef size, IntArrayRef stride, std::optional<ScalarType> type,
                     std::optional<c10::Layout>, std::optional<c10::Device> device,
                     std::optional<bool>)
{
    DeviceScope scope(device);
    return at::detail::empty_strided_generic(size, stride, allocator(), KEYS,
                                             c10::dtype_or_default(type));
}

Tensor as_strided(const Tensor &self, SymIntArrayRef size, SymIntArrayRef stride,
                  std::optional<SymInt> offset)
{
    return at::cpu::as_strided_symint(self, size, stride, std::move(offset));
}

Tensor view(const Tensor &self, SymIntArrayRef size)
{
    return at::native::view(self, C10_AS_INTARRAYREF_SLOW(size));
}

Tensor reshape_alias(const Tensor &self, SymIntArrayRef size, SymIntArrayRef stride)
{
    return at::native::_reshape_alias(self, C10_AS_INTARRAYREF_SLOW(size),
                                      C10_AS_INTARRAYREF_SLOW(stride));
}

const Tensor &resize(const Tensor &self, SymIntArrayRef symbolic_size,
                     std::optional<c10::MemoryFormat> format)
{
    const auto size = C10_AS_INTARRAYREF_SLOW(symbolic_size);
    at::TensorImpl *impl = self.unsafeGetTensorImpl();
    if (self.sizes() != size) {
        impl->set_sizes_contiguous(size);
    }
    const size_t needed =
        self.numel() ? (size_t)(self.storage_offset() + self.numel()) * self.itemsize() : 0;
    if (needed > self.storage().nbytes()) {
        Lock lock;
        resize_storage(self.storage().unsafeGetStorageImpl(), needed);
    }
    if (format) {
        impl->empty_tensor_restride(*format);
    }
    return self;
}

Tensor &set_tensor(Tensor &self, const Tensor &source)
{
    return at::native::set_tensor_(self, source);
}

Tensor &set_storage(Tensor &self, c10::Storage storage)
{
    return at::native::set_(self, std::move(storage));
}

Tensor &set_part_of_storage(Tensor &self, c10::Storage storage, int64_t offset, IntArrayRef size,
                            IntArrayRef stride)
{
    return at::cpu::set_(self, std::move(storage), offset, size, stride);
}

Tensor &set_nothing(Tensor &self)
{
    c10::Storage storage(c10::Storage::use_byte_size_t(), 0, Cell::make(self.device().index(), 0),
                         allocator(), true);
    return at::cpu::set_(self, std::move(storage), 0, {0}, {1});
}

Tensor unfold(const Tensor &self, int64_t dimension, int64_t size, int64_t step)
{
    return at::native::unfold(self, dimension, size, step);
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    library.impl("empty.memory_format", empty);
    library.impl("empty_strided", empty_strided);
    library.impl("as_strided", as_strided);
    library.impl("view", view);
    library.impl("_reshape_alias", reshape_alias);
    library.impl("unfold", unfold);
    library.impl("view_as_real", at::native::view_as_real);
    library.impl("view_as_complex", at::native::view_as_complex);
    library.impl("resize_", resize);
    library.impl("set_.source_Tensor", set_tensor);
    library.impl("set_.source_Storage", set_storage);
    library.impl("set_.source_Storage_storage_offset", set_part_of_storage);
    library.impl("set_", set_nothing);
}

} // namespace
} // namespace halyard

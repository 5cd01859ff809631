// The allocator of the device: a storage is a cell, and memory is taken when values are computed.
#include <c10/core/Allocator.h>

#include "cell.h"

namespace halyard
{
namespace
{

struct CellAllocator final : c10::Allocator {
    at::DataPtr allocate(size_t bytes) override
    {
        return Cell::make(current_device(), bytes);
    }
    at::DeleterFnPtr raw_deleter() const override
    {
        return &Cell::destroy;
    }
    void copy_data(void *, const void *, size_t) const override
    {
        TORCH_CHECK(false, "halyard: storages are copied by tensors, not by their addresses");
    }
};

CellAllocator the_allocator;

} // namespace

c10::Allocator *allocator()
{
    return &the_allocator;
}

REGISTER_ALLOCATOR(c10::DeviceType::PrivateUse1, &the_allocator);

} // namespace halyard

#include "addresses.h"

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include <sys/mman.h>

#include <c10/util/Exception.h>

namespace halyard
{
namespace
{

constexpr size_t RANGE = size_t(1) << 44; // 16 TiB of addresses, no memory
constexpr size_t LEAST = 64;              // PyTorch's alignment of storages

char *base = nullptr;
size_t used = 0;

// By the logarithm of the size. Never destroyed: tensors outlive the library's statics.
std::vector<void *> &free_list(size_t index)
{
    static auto *lists = new std::array<std::vector<void *>, 48>;
    return (*lists)[index];
}

size_t class_of(size_t bytes)
{
    return bytes <= LEAST ? std::bit_width(LEAST - 1) : std::bit_width(bytes - 1);
}

void reserve()
{
    void *range =
        mmap(nullptr, RANGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TORCH_CHECK_WITH(OutOfMemoryError, range != MAP_FAILED,
                     "halyard: the system refused to reserve addresses: raise `ulimit -v`");
    base = (char *)range;
}

} // namespace

void *address_take(size_t bytes)
{
    if (bytes == 0) {
        return nullptr;
    }
    const size_t index = class_of(bytes);
    TORCH_CHECK_WITH(OutOfMemoryError, index < 44, "halyard: a storage of ", bytes,
                     " bytes is more than any device has");
    std::vector<void *> &list = free_list(index);
    if (!list.empty()) {
        void *address = list.back();
        list.pop_back();
        return address;
    }
    if (!base) {
        reserve();
    }
    TORCH_CHECK_WITH(OutOfMemoryError, RANGE - used >= (size_t(1) << index),
                     "halyard: too many storages: the reserved addresses are used up");
    void *address = base + used;
    used += size_t(1) << index;
    return address;
}

void address_return(void *address, size_t bytes)
{
    if (address) {
        free_list(class_of(bytes)).push_back(address);
    }
}

bool address_is_ours(const void *address) noexcept
{
    return base && (const char *)address >= base && (const char *)address < base + RANGE;
}

} // namespace halyard

// Addresses that stand for storages. PyTorch tells storages and their parts apart by addresses, but
// the values are not in the process's memory: the range is reserved and a stray access traps.
#pragma once

#include <cstddef>

namespace halyard
{

// An address with `bytes` bytes after it that no other storage has; null for 0 bytes. Under the
// lock. Throws a c10::OutOfMemoryError where the reserved range is used up.
void *address_take(size_t bytes);
void address_return(void *address, size_t bytes);
// Whether an address is of the range.
bool address_is_ours(const void *address) noexcept;

} // namespace halyard

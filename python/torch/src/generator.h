// Random numbers: PyTorch's generator on the host gives the key of each call (ops_random_key).
#pragma once

#include <optional>

#include <ATen/core/Generator.h>

#include <ops/ops.h>

namespace halyard
{

const at::Generator &default_generator(int64_t device);
at::Generator new_generator(int64_t device);

// The key of one tensor of random numbers, of the generator or the device's default one.
ops_random_key next_key(const std::optional<at::Generator> &generator, int64_t device);

} // namespace halyard

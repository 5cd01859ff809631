// Operators that the processor computes: tensors are copied there and back; calls are counted.
#pragma once

#include <map>
#include <string>

#include <ATen/core/boxing/KernelFunction.h>
#include <ATen/core/stack.h>

namespace halyard
{

// HALYARD_TORCH_FALLBACK: whether operators may be computed by the processor.
enum class Fallback { ALLOW, WARN, ERROR };

Fallback fallback_policy() noexcept;
void set_fallback_policy(Fallback policy);

// Computes an operator on the processor. Without the lock. Throws a c10::NotImplementedError that
// names the operator and the reason if the policy is ERROR.
void fall_back(const c10::OperatorHandle &op, torch::jit::Stack *stack, const std::string &reason);

// Counts a call that the processor computes, for operators that do not go through fall_back.
void note_fallback(const std::string &name, const std::string &reason);

// Calls since the last reset, by operator.
std::map<std::string, int64_t> fallback_counts(bool reset);

} // namespace halyard

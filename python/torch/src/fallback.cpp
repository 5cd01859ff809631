#include "fallback.h"

#include <cstdlib>
#include <mutex>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/native/CPUFallback.h>

#include "cell.h"
#include "generator.h"

namespace halyard
{
namespace
{

Fallback policy_from_environment()
{
    const char *text = std::getenv("HALYARD_TORCH_FALLBACK");
    const std::string name = text ? text : "allow";
    TORCH_CHECK(name == "allow" || name == "warn" || name == "error",
                "HALYARD_TORCH_FALLBACK: expected allow, warn or error, got ", name);
    return name == "allow" ? Fallback::ALLOW : name == "warn" ? Fallback::WARN : Fallback::ERROR;
}

Fallback policy = policy_from_environment();
std::mutex counts_mutex;
std::map<std::string, int64_t> counts;

// Counts a call and returns whether it is the operator's first.
bool count_call(const std::string &name)
{
    std::lock_guard<std::mutex> lock(counts_mutex);
    return counts[name]++ == 0;
}

void fall_back_without_reason(const c10::OperatorHandle &op, torch::jit::Stack *stack)
{
    fall_back(op, stack, "the operator has no kernel for halyard");
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library)
{
    library.fallback(torch::CppFunction::makeFromBoxedFunction<&fall_back_without_reason>());
}

// The processor takes generators of its own: one with a seed that the device's generator draws.
void replace_generators(torch::jit::Stack &stack, size_t argument_count)
{
    for (size_t i = stack.size() - argument_count; i < stack.size(); i++) {
        if (stack[i].isGenerator() && stack[i].toGenerator().defined() &&
            stack[i].toGenerator().device().type() == c10::DeviceType::PrivateUse1) {
            const at::Generator own = stack[i].toGenerator();
            stack[i] = at::detail::createCPUGenerator(next_key(own, own.device().index()).seed);
        }
    }
}

// PyTorch's generic kernels of these read or write the tensors' memory on the processor whatever their device is,
// or call a kernel that only its own devices have.
const c10::OperatorName OF_THE_PROCESSOR[] = {{"aten::_grid_sampler_2d_cpu_fallback", ""},
                                              {"aten::_grid_sampler_2d_cpu_fallback_backward", ""},
                                              {"aten::conj_physical_", ""},
                                              {"aten::range", "out_"},
                                              {"aten::_batch_norm_no_update", ""}};

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library)
{
    for (const c10::OperatorName &op : OF_THE_PROCESSOR) {
        if (c10::Dispatcher::singleton().findSchema(op)) {
            library.impl(c10::toString(op).c_str(),
                         torch::CppFunction::makeFromBoxedFunction<&fall_back_without_reason>());
        }
    }
}

} // namespace

Fallback fallback_policy() noexcept
{
    return policy;
}

void set_fallback_policy(Fallback chosen)
{
    policy = chosen;
}

void note_fallback(const std::string &name, const std::string &reason)
{
    const bool is_first = count_call(name);
    TORCH_CHECK_NOT_IMPLEMENTED(policy != Fallback::ERROR, name, " is not computed by halyard (",
                                reason,
                                "), and HALYARD_TORCH_FALLBACK=error forbids the processor");
    if (policy == Fallback::WARN && is_first) {
        TORCH_WARN(name, " is computed by the processor: ", reason);
    }
}

void fall_back(const c10::OperatorHandle &op, torch::jit::Stack *stack, const std::string &reason)
{
    const c10::OperatorName &full = op.schema().operator_name();
    const std::string name =
        full.overload_name.empty() ? full.name : full.name + "." + full.overload_name;
    note_fallback(name, reason);
    replace_generators(*stack, op.schema().arguments().size());
    at::native::cpu_fallback(op, stack);
}

std::map<std::string, int64_t> fallback_counts(bool reset)
{
    std::lock_guard<std::mutex> lock(counts_mutex);
    std::map<std::string, int64_t> result = counts;
    if (reset) {
        counts.clear();
    }
    return result;
}

} // namespace halyard

// What the Python module asks for: torch.ops.halyard.
#include <hal/memory_peaks.h>
#include <torch/library.h>

#include "fallback.h"
#include "generator.h"
#include "runtime.h"

namespace halyard
{
namespace
{

std::vector<int64_t> statistics(int64_t device)
{
    Lock lock;
    ops_array_statistics counts{};
    counts.size = sizeof counts;
    check(ops_context_get_statistics(context_at(device), &counts));
    return {(int64_t)counts.recorded, (int64_t)counts.evaluated, (int64_t)counts.dropped,
            (int64_t)counts.kernels,  (int64_t)counts.compiled,  (int64_t)counts.arrays,
            (int64_t)counts.deferred};
}

std::vector<int64_t> memory(int64_t device)
{
    Lock lock;
    hal_memory_statistics bytes;
    hal_memory_peaks peaks;
    check(hal_device_get_memory(device_at(device).device, &bytes));
    check(hal_device_get_memory_peaks(device_at(device).device, &peaks));
    return {(int64_t)bytes.total_bytes,      (int64_t)bytes.free_bytes,
            (int64_t)bytes.in_use_bytes,     (int64_t)bytes.pooled_bytes,
            (int64_t)bytes.allocation_count, (int64_t)bytes.copied_bytes,
            (int64_t)peaks.in_use_bytes,     (int64_t)peaks.held_bytes};
}

void reset_peaks(int64_t device)
{
    Lock lock;
    check(hal_device_reset_memory_peaks(device_at(device).device));
}

void empty_cache(int64_t device)
{
    Lock lock;
    check(hal_device_trim(device_at(device).device));
}

void flush(int64_t device)
{
    Lock lock;
    Device &d = device_at(device);
    if (!d.records_graph) {
        evaluate_deferred(d);
        check(hal_queue_flush(d.queue, nullptr));
    }
}

c10::Dict<std::string, int64_t> fallbacks(bool reset)
{
    c10::Dict<std::string, int64_t> result;
    for (const auto &[name, count] : fallback_counts(reset)) {
        result.insert(name, count);
    }
    return result;
}

at::Generator generator_of(int64_t device)
{
    return default_generator(device);
}

void manual_seed(int64_t device, int64_t seed)
{
    at::Generator generator = generator_of(device);
    std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_current_seed((uint64_t)seed);
}

void set_random_state(int64_t device, const at::Tensor &state)
{
    at::Generator generator = generator_of(device);
    std::lock_guard<std::mutex> lock(generator.mutex());
    generator.set_state(state);
}

at::Tensor get_random_state(int64_t device)
{
    at::Generator generator = generator_of(device);
    std::lock_guard<std::mutex> lock(generator.mutex());
    return generator.get_state();
}

TORCH_LIBRARY(halyard, library)
{
    library.def("device_count() -> int", [] { return device_count(); });
    library.def("current_device() -> int", [] { return current_device(); });
    library.def("set_device(int device) -> ()", [](int64_t device) { set_current_device(device); });
    library.def("device_name(int device) -> str", device_name);
    library.def("synchronize(int device) -> ()", synchronize);
    library.def("flush(int device) -> ()", flush);
    library.def("statistics(int device) -> int[]", statistics);
    library.def("memory(int device) -> int[]", memory);
    library.def("reset_peaks(int device) -> ()", reset_peaks);
    library.def("empty_cache(int device) -> ()", empty_cache);
    library.def("fallbacks(bool reset) -> Dict(str, int)", fallbacks);
    library.def("manual_seed(int device, int seed) -> ()", manual_seed);
    library.def("initial_seed(int device) -> int",
                [](int64_t device) { return (int64_t)generator_of(device).current_seed(); });
    library.def("get_random_state(int device) -> Tensor", get_random_state);
    library.def("set_random_state(int device, Tensor state) -> ()", set_random_state);
    library.def("set_fallback(int policy) -> ()",
                [](int64_t policy) { set_fallback_policy((Fallback)policy); });
    library.def("set_mode(int mode) -> ()", [](int64_t chosen) { set_mode((Mode)chosen); });
    library.def("mode() -> int", [] { return (int64_t)mode(); });
}

} // namespace
} // namespace halyard

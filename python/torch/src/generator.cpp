#include "generator.h"

#include <ATen/CPUGeneratorImpl.h>

#include "runtime.h"

namespace halyard
{
namespace
{

// The state and its serial form are those of PyTorch's processor.
struct Generator final : at::CPUGeneratorImpl {
    explicit Generator(int64_t device)
    {
        device_ = c10::Device(c10::DeviceType::PrivateUse1, (c10::DeviceIndex)device);
        key_set_ = c10::DispatchKeySet(c10::DispatchKey::PrivateUse1);
    }
};

} // namespace

at::Generator new_generator(int64_t device)
{
    return at::make_generator<Generator>(device < 0 ? current_device() : device);
}

const at::Generator &default_generator(int64_t device)
{
    static auto *generators = [] {
        auto *list = new std::vector<at::Generator>;
        for (int64_t i = 0; i < device_count(); i++) {
            list->push_back(new_generator(i));
        }
        return list;
    }();
    const int64_t index = device < 0 ? current_device() : device;
    TORCH_CHECK(index < (int64_t)generators->size(), "halyard: there is no device ", index);
    return (*generators)[(size_t)index];
}

ops_random_key next_key(const std::optional<at::Generator> &generator, int64_t device)
{
    at::Generator chosen =
        generator && generator->defined() ? *generator : default_generator(device);
    TORCH_CHECK(chosen.device().type() == c10::DeviceType::PrivateUse1,
                "Expected a 'halyard' device type for generator but found '",
                chosen.device().type(), "'");
    std::lock_guard<std::mutex> lock(chosen.mutex());
    auto *state = static_cast<at::CPUGeneratorImpl *>(chosen.unsafeGetGeneratorImpl());
    return {state->random64(), 0};
}

} // namespace halyard

// What PyTorch asks a device for: is it there, its generators, its storages' sizes.
#include <ATen/core/CachingHostAllocator.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>

#include "addresses.h"
#include "cell.h"
#include "generator.h"

namespace halyard
{
namespace
{

struct Hooks final : at::PrivateUse1HooksInterface {
    bool isBuilt() const override
    {
        return true;
    }
    bool isAvailable() const override
    {
        return device_count() > 0;
    }
    at::DeviceIndex deviceCount() const override
    {
        return (at::DeviceIndex)device_count();
    }
    at::DeviceIndex getCurrentDevice() const override
    {
        return (at::DeviceIndex)current_device();
    }
    void setCurrentDevice(at::DeviceIndex device) const override
    {
        set_current_device(device);
    }
    at::DeviceIndex exchangeDevice(at::DeviceIndex device) const override
    {
        const at::DeviceIndex old = getCurrentDevice();
        set_current_device(device);
        return old;
    }
    at::DeviceIndex maybeExchangeDevice(at::DeviceIndex device) const override
    {
        return device < 0 ? getCurrentDevice() : exchangeDevice(device);
    }
    bool hasPrimaryContext(at::DeviceIndex device) const override
    {
        return device_is_open(device);
    }
    const at::Generator &getDefaultGenerator(at::DeviceIndex device) const override
    {
        return default_generator(device);
    }
    at::Generator getNewGenerator(at::DeviceIndex device) const override
    {
        return new_generator(device);
    }
    at::Device getDeviceFromPtr(void *address) const override
    {
        TORCH_CHECK(address_is_ours(address), "halyard: the address is of no storage of a device");
        return {c10::DeviceType::PrivateUse1, (at::DeviceIndex)current_device()};
    }
    // hal stages transfers itself; ordinary memory of the host is as good.
    at::Allocator *getPinnedMemoryAllocator() const override
    {
        return c10::GetAllocator(c10::DeviceType::CPU);
    }
    void resizePrivateUse1Bytes(const c10::Storage &storage, size_t bytes) const override
    {
        Lock lock;
        resize_storage(storage.unsafeGetStorageImpl(), bytes);
    }
};

const bool registered = [] {
    at::RegisterPrivateUse1HooksInterface(new Hooks);
    return true;
}();

} // namespace
} // namespace halyard

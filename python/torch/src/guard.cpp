// Current device, streams and events. A device has one queue, so all of its streams are in order
// with each other; an event is a point of that queue. Autograd requires both.
#include <atomic>

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "array.h"
#include "runtime.h"

namespace halyard
{
namespace
{

constexpr c10::DeviceType TYPE = c10::DeviceType::PrivateUse1;

struct Event {
    hal_point point;
};

// Computes what is deferred, so that the point comes after it. One with a time is that of a batch
// of its own: the queue may have had none, or its last one may have ended long ago.
hal_point point_now(int64_t index, bool has_time = false)
{
    Lock lock;
    Device &device = device_at(index);
    evaluate_deferred(device);
    if (has_time) {
        const int64_t length = 1;
        const Array one(ops_array_full(device.context, HAL_TYPE_F32, 1, &length, 1));
        const Array copy(ops_array_copy(one)); // constants are kept, and cost nothing again
        ops_array *const array = copy;
        check(ops_array_record(&array, 1));
    }
    hal_point point;
    check(hal_queue_flush(device.queue, &point));
    return point;
}

bool is_reached(hal_point point)
{
    const hal_status status = hal_point_wait(point, 0);
    if (status == HAL_ERROR_TIMEOUT) {
        return false;
    }
    check(status);
    return true;
}

thread_local c10::StreamId current_streams[64];

struct Guard final : c10::impl::DeviceGuardImplInterface {
    c10::DeviceType type() const override
    {
        return TYPE;
    }
    c10::Device getDevice() const override
    {
        return {TYPE, (c10::DeviceIndex)current_device()};
    }
    void setDevice(c10::Device device) const override
    {
        if (device.has_index()) {
            set_current_device(device.index());
        }
    }
    void uncheckedSetDevice(c10::Device device) const noexcept override
    {
        if (device.has_index() && device.index() < device_count()) {
            set_current_device(device.index());
        }
    }
    c10::Device exchangeDevice(c10::Device device) const override
    {
        const c10::Device old = getDevice();
        setDevice(device);
        return old;
    }
    c10::DeviceIndex deviceCount() const noexcept override
    {
        return (c10::DeviceIndex)device_count();
    }

    c10::Device indexed(c10::Device device) const
    {
        return device.has_index() ? device : getDevice();
    }
    c10::Stream getStream(c10::Device device) const override
    {
        device = indexed(device);
        return c10::Stream(c10::Stream::UNSAFE, device, current_streams[device.index() & 63]);
    }
    c10::Stream getDefaultStream(c10::Device device) const override
    {
        return c10::Stream(c10::Stream::DEFAULT, indexed(device));
    }
    c10::Stream getNewStream(c10::Device device, int) const override
    {
        static std::atomic<c10::StreamId> next{1};
        return c10::Stream(c10::Stream::UNSAFE, indexed(device), next++);
    }
    c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override
    {
        return getNewStream(device, 0);
    }
    c10::Stream exchangeStream(c10::Stream stream) const override
    {
        const c10::Stream old = getStream(stream.device());
        current_streams[stream.device_index() & 63] = stream.id();
        return old;
    }
    void *getStreamNativeHandle(const c10::Stream stream) const override
    {
        Lock lock;
        Device &device = device_at(stream.device_index());
        evaluate_deferred(device);
        check(hal_queue_flush(device.queue, nullptr));
        return device.queue;
    }
    bool queryStream(const c10::Stream &stream) const override
    {
        return is_reached(point_now(stream.device_index()));
    }
    void synchronizeStream(const c10::Stream &stream) const override
    {
        synchronize(stream.device_index());
    }
    void synchronizeDevice(const c10::DeviceIndex index) const override
    {
        synchronize(index < 0 ? current_device() : index);
    }

    void record(void **event, const c10::Stream &stream, const c10::DeviceIndex,
                const c10::EventFlag flag) const override
    {
        const bool has_time = flag == c10::EventFlag::BACKEND_DEFAULT;
        const hal_point point = point_now(stream.device_index(), has_time);
        if (!*event) {
            *event = new Event;
        }
        static_cast<Event *>(*event)->point = point;
    }
    // Later work of the event's own queue comes after it in any case.
    void block(void *event, const c10::Stream &stream) const override
    {
        if (event) {
            Lock lock;
            Device &device = device_at(stream.device_index());
            const hal_point point = static_cast<Event *>(event)->point;
            if (point.queue != device.queue) {
                check(hal_queue_wait_point(device.queue, point));
            }
        }
    }
    bool queryEvent(void *event) const override
    {
        return !event || is_reached(static_cast<Event *>(event)->point);
    }
    void synchronizeEvent(void *event) const override
    {
        if (event) {
            check(hal_point_wait(static_cast<Event *>(event)->point, HAL_WAIT_FOREVER));
        }
    }
    double elapsedTime(void *first, void *second, const c10::DeviceIndex) const override
    {
        TORCH_CHECK(first && second, "elapsed_time: both events have to be recorded before");
        Lock lock;
        uint64_t nanoseconds = 0;
        check(hal_point_get_elapsed(static_cast<Event *>(first)->point,
                                    static_cast<Event *>(second)->point, &nanoseconds));
        return (double)nanoseconds * 1e-6;
    }
    void destroyEvent(void *event, const c10::DeviceIndex) const noexcept override
    {
        delete static_cast<Event *>(event);
    }
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

} // namespace
} // namespace halyard

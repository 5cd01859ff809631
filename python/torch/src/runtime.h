// The devices of the process: opened on first use, one queue and one context each, and the lock.
//
// Locks: one mutex guards all contexts and cells. While a thread holds it, it takes no other lock
// that Python code may hold; so a deleter never waits for it (Cell::destroy in cell.cpp).
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <ops/ops.h>

namespace halyard
{

struct Cell;

struct Device {
    std::string selection; // of hal_device_open; "" for the default
    hal_device *device = nullptr;
    hal_queue *queue = nullptr;
    ops_context *context = nullptr;
    Cell *deferred = nullptr;          // cells whose value may not be computed yet
    ops_array *failed_index = nullptr; // I32: 1 if an index was out of range; null: no tests
    bool records_graph = false;
};

// HALYARD_TORCH: what happens at an operator's call.
enum class Mode {
    FUSED,   // the operation is deferred
    EAGER,   // its kernel is recorded
    BLOCKING // its kernel has run when the call returns
};

// Takes the lock and makes the thread the contexts' thread. Recursive.
class Lock
{
  public:
    Lock();
    ~Lock();
    Lock(const Lock &) = delete;
    Lock &operator=(const Lock &) = delete;
};
// For deleters: whether the lock was free, or this thread's.
bool try_lock();
void unlock();

// The number of devices; 0 where none can be listed.
int64_t device_count() noexcept;
// The device, open. Under the lock. Throws a c10::Error with hal's message.
Device &device_at(int64_t index);
inline ops_context *context_at(int64_t index)
{
    return device_at(index).context;
}
bool device_is_open(int64_t index);
std::string device_name(int64_t index);

// The calling thread's current device.
int64_t current_device() noexcept;
void set_current_device(int64_t index);

Mode mode() noexcept;
void set_mode(Mode mode);

// Throws the Python exception for a status that is not HAL_OK.
void check(hal_status status);

// Records what computes every deferred cell of a device. Under the lock.
void evaluate_deferred(Device &device);
// The same, and waits for the device.
void synchronize(int64_t index);

} // namespace halyard

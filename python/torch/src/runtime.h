// The devices of the process: opened on first use, one queue and one context each, and the lock.
//
// Locks: one mutex guards all contexts and cells. While a thread holds it, it takes no other lock
// that Python code may hold; so a deleter never waits for it (Cell::destroy in cell.cpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <pthread.h>

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
    hal_buffer *index_result = nullptr; // of the host, for begin_index_check; null: not made yet
    bool has_index_result = false;      // and nothing has tested it yet
    uint32_t index_losses = 0;          // of the queue, when it was copied
    uint64_t index_batch = 0;           // of the copy, see hal_queue_get_batch
    bool records_graph = false;
};

// HALYARD_TORCH: what happens at an operator's call.
enum class Mode {
    FUSED,   // the operation is deferred
    EAGER,   // its kernel is recorded
    BLOCKING // its kernel has run when the call returns
};

// The mutex and who holds it: a nested lock, and there are some in each operator, costs no atomic
// operation.
struct LockState {
    std::mutex mutex;
    std::atomic<uintptr_t> holder{0};
    uint32_t depth = 0; // of the holder's locks
};
extern LockState lock_state;

inline uintptr_t this_thread() noexcept
{
    return (uintptr_t)pthread_self();
}
inline bool has_lock() noexcept
{
    return lock_state.holder.load(std::memory_order_relaxed) == this_thread();
}
// The outermost lock of a thread.
void lock_first();
inline void unlock() noexcept
{
    if (--lock_state.depth == 0) {
        lock_state.holder.store(0, std::memory_order_relaxed);
        lock_state.mutex.unlock();
    }
}
// For deleters: whether the lock was free, or this thread's.
bool try_lock();

// Takes the lock and makes the thread the contexts' thread. Recursive.
class Lock
{
  public:
    Lock()
    {
        if (has_lock()) {
            lock_state.depth++;
        } else {
            lock_first();
        }
    }
    ~Lock()
    {
        unlock();
    }
    Lock(const Lock &) = delete;
    Lock &operator=(const Lock &) = delete;
};

// The devices, once they are listed: the count is written last. Never destroyed: tensors outlive
// the library's statics.
struct DeviceList {
    Device *devices = nullptr;
    std::atomic<int64_t> count{0};
};
extern DeviceList listed;

// The number of devices; 0 where none can be listed.
int64_t device_count() noexcept;
// Lists the devices if they are not, and opens one.
Device &device_open(int64_t index);
// The device, open. Under the lock. Throws a c10::Error with hal's message.
inline Device &device_at(int64_t index)
{
    const bool is_open = index >= 0 && index < listed.count && listed.devices[index].context;
    return is_open ? listed.devices[index] : device_open(index);
}
inline ops_context *context_at(int64_t index)
{
    return device_at(index).context;
}
bool device_is_open(int64_t index);
std::string device_name(int64_t index);

// The calling thread's current device.
int64_t current_device() noexcept;
void set_current_device(int64_t index);

extern Mode chosen_mode;
inline Mode mode() noexcept
{
    return chosen_mode;
}
void set_mode(Mode mode);

// Throws the Python exception for a status that is not HAL_OK.
void check(hal_status status);

// Records what computes every deferred cell of a device. Under the lock.
void evaluate_deferred(Device &device);
// The same, and waits for the device.
void synchronize(int64_t index);

} // namespace halyard

#include "runtime.h"

#include <algorithm>
#include <cstdlib>

#include <c10/util/Exception.h>

#include "cell.h"
#include "index_check.h"

namespace halyard
{

LockState lock_state;
DeviceList listed;

namespace
{

thread_local int64_t current = 0;
uintptr_t owner = 0; // the thread that the contexts belong to

Mode mode_from_environment()
{
    const char *text = std::getenv("HALYARD_TORCH");
    const std::string name = text ? text : "fused";
    TORCH_CHECK(name == "fused" || name == "eager" || name == "blocking",
                "HALYARD_TORCH: expected fused, eager or blocking, got ", name);
    return name == "fused" ? Mode::FUSED : name == "eager" ? Mode::EAGER : Mode::BLOCKING;
}

// With HAL_BACKEND its items; else the default choice, then the others as hal-info lists them.
std::vector<std::string> selections()
{
    std::vector<std::string> found;
    const char *text = std::getenv("HAL_BACKEND");
    if (text && *text) {
        const std::string list = text;
        for (size_t begin = 0; begin <= list.size();) {
            const size_t end = std::min(list.find(',', begin), list.size());
            found.push_back(list.substr(begin, end - begin));
            begin = end + 1;
        }
        return found;
    }
    hal_registry_report *report = nullptr;
    if (hal_registry_report_create(&report) != HAL_OK) {
        return found;
    }
    if (*report->choice) {
        found.push_back(report->choice);
    }
    for (uint32_t i = 0; i < report->plugin_count; i++) {
        const hal_plugin_report &plugin = report->plugins[i];
        for (uint32_t k = 0; plugin.status == HAL_OK && k < plugin.device_count; k++) {
            const std::string name = std::string(plugin.name) + ":" + std::to_string(k);
            if (name != report->choice) {
                found.push_back(name);
            }
        }
    }
    hal_registry_report_destroy(report);
    return found;
}

void list_devices()
{
    static std::once_flag once;
    std::call_once(once, [] {
        const std::vector<std::string> found = selections();
        listed.devices = new Device[found.size()];
        for (size_t i = 0; i < found.size(); i++) {
            listed.devices[i].selection = found[i];
        }
        listed.count = (int64_t)found.size();
    });
}

void open_device(Device &device)
{
    check(hal_device_open(device.selection.c_str(), &device.device));
    check(hal_queue_create(device.device, &device.queue));
    check(ops_context_create(device.queue, &device.context));
    ops_context_set_fusion(device.context, chosen_mode == Mode::FUSED);
    // Reproducible too, so also with torch.use_deterministic_algorithms.
    ops_context_set_scatter(device.context, OPS_SCATTER_UNORDERED);
}

// After the mutex was locked.
void become_holder()
{
    const uintptr_t thread = this_thread();
    lock_state.holder.store(thread, std::memory_order_relaxed);
    lock_state.depth = 1;
    if (C10_LIKELY(owner == thread)) {
        return;
    }
    for (int64_t i = 0; i < listed.count; i++) {
        if (listed.devices[i].context) {
            check(ops_context_set_thread(listed.devices[i].context));
        }
    }
    owner = thread;
}

} // namespace

Mode chosen_mode = mode_from_environment();

void lock_first()
{
    lock_state.mutex.lock();
    try {
        become_holder();
        Cell::sweep();
    } catch (...) {
        unlock();
        throw;
    }
}

bool try_lock()
{
    if (has_lock()) {
        lock_state.depth++;
        return true;
    }
    if (!lock_state.mutex.try_lock()) {
        return false;
    }
    try {
        become_holder();
    } catch (...) { // the deleter leaves its work to the next lock
        unlock();
        return false;
    }
    return true;
}

int64_t device_count() noexcept
{
    list_devices();
    return listed.count;
}

Device &device_open(int64_t index)
{
    const int64_t count = device_count();
    TORCH_CHECK(index >= 0 && index < count, "halyard: expected a device below ", count, ", got ",
                index, "; hal-info lists the devices");
    Device &device = listed.devices[index];
    if (!device.context) {
        open_device(device);
    }
    return device;
}

bool device_is_open(int64_t index)
{
    Lock lock;
    return index >= 0 && index < listed.count && listed.devices[index].context;
}

std::string device_name(int64_t index)
{
    Lock lock;
    const hal_device *device = device_at(index).device;
    return std::string(hal_device_get_plugin_name(device)) + ": " +
           hal_device_get_info(device)->name;
}

int64_t current_device() noexcept
{
    return current;
}

void set_current_device(int64_t index)
{
    TORCH_CHECK(index >= 0 && index < device_count(), "halyard: expected a device below ",
                device_count(), ", got ", index);
    current = index;
}

void set_mode(Mode mode)
{
    Lock lock;
    chosen_mode = mode;
    for (int64_t i = 0; i < listed.count; i++) {
        if (listed.devices[i].context) {
            ops_context_set_fusion(listed.devices[i].context, mode == Mode::FUSED);
        }
    }
}

void check(hal_status status)
{
    if (C10_LIKELY(status == HAL_OK)) {
        return;
    }
    const std::string message = std::string(hal_status_name(status)) + ": " + hal_status_message();
    TORCH_CHECK_WITH(OutOfMemoryError, status != HAL_ERROR_OUT_OF_MEMORY, message);
    TORCH_CHECK_NOT_IMPLEMENTED(status != HAL_ERROR_UNSUPPORTED, message);
    TORCH_CHECK(false, message);
}

void evaluate_deferred(Device &device)
{
    std::vector<ops_array *> arrays;
    while (Cell *cell = device.deferred) {
        arrays.push_back(cell->value);
        cell->forget_deferred();
    }
    if (device.failed_index) {
        arrays.push_back(device.failed_index);
    }
    if (arrays.empty()) {
        return;
    }
    const hal_status together = ops_array_record(arrays.data(), (uint32_t)arrays.size());
    if (together != HAL_ERROR_INVALID_STATE) {
        check(together);
        return;
    }
    for (ops_array *array : arrays) { // whoever reads one that was lost is told, and not this call
        const hal_status status = ops_array_record(&array, 1);
        check(status == HAL_ERROR_INVALID_STATE ? HAL_OK : status);
    }
}

void synchronize(int64_t index)
{
    hal_point point;
    {
        Lock lock;
        Device &device = device_at(index);
        evaluate_deferred(device);
        begin_index_check(device);
        check(hal_queue_flush(device.queue, &point));
    }
    check(hal_point_wait(point, HAL_WAIT_FOREVER));
    Lock lock;
    check_indices(device_at(index));
}

} // namespace halyard

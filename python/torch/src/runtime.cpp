#include "runtime.h"

#include <algorithm>
#include <cstdlib>

#include <c10/util/Exception.h>

#include "cell.h"
#include "index_check.h"

namespace halyard
{
namespace
{

std::recursive_mutex mutex;
// Destroyed last of all, if ever: tensors outlive the library's statics.
std::vector<Device> &devices()
{
    static auto *list = new std::vector<Device>;
    return *list;
}
thread_local int64_t current = 0;
thread_local char thread_mark;
const char *owner = nullptr; // the mark of the thread that the contexts belong to

Mode mode_from_environment()
{
    const char *text = std::getenv("HALYARD_TORCH");
    const std::string name = text ? text : "fused";
    TORCH_CHECK(name == "fused" || name == "eager" || name == "blocking",
                "HALYARD_TORCH: expected fused, eager or blocking, got ", name);
    return name == "fused" ? Mode::FUSED : name == "eager" ? Mode::EAGER : Mode::BLOCKING;
}
Mode chosen_mode = mode_from_environment();

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
    static std::once_flag listed;
    std::call_once(listed, [] {
        for (const std::string &selection : selections()) {
            Device device;
            device.selection = selection;
            devices().push_back(device);
        }
    });
}

void open_device(Device &device)
{
    check(hal_device_open(device.selection.c_str(), &device.device));
    check(hal_queue_create(device.device, &device.queue));
    check(ops_context_create(device.queue, &device.context));
    ops_context_set_fusion(device.context, chosen_mode == Mode::FUSED);
}

void take_contexts()
{
    if (owner == &thread_mark) {
        return;
    }
    owner = &thread_mark;
    for (Device &device : devices()) {
        if (device.context) {
            check(ops_context_set_thread(device.context));
        }
    }
}

} // namespace

Lock::Lock()
{
    mutex.lock();
    take_contexts();
    Cell::sweep();
}

Lock::~Lock()
{
    mutex.unlock();
}

bool try_lock()
{
    if (!mutex.try_lock()) {
        return false;
    }
    take_contexts();
    return true;
}

void unlock()
{
    mutex.unlock();
}

int64_t device_count() noexcept
{
    list_devices();
    return (int64_t)devices().size();
}

Device &device_at(int64_t index)
{
    const int64_t count = device_count();
    TORCH_CHECK(index >= 0 && index < count, "halyard: expected a device below ", count, ", got ",
                index, "; hal-info lists the devices");
    Device &device = devices()[(size_t)index];
    if (C10_UNLIKELY(!device.context)) {
        open_device(device);
    }
    return device;
}

bool device_is_open(int64_t index)
{
    return index >= 0 && index < (int64_t)devices().size() && devices()[(size_t)index].context;
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

Mode mode() noexcept
{
    return chosen_mode;
}

void set_mode(Mode mode)
{
    Lock lock;
    chosen_mode = mode;
    for (Device &device : devices()) {
        if (device.context) {
            ops_context_set_fusion(device.context, mode == Mode::FUSED);
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
    if (!arrays.empty()) {
        check(ops_array_evaluate(arrays.data(), (uint32_t)arrays.size()));
    }
}

void synchronize(int64_t index)
{
    hal_point point;
    {
        Lock lock;
        Device &device = device_at(index);
        evaluate_deferred(device);
        check(hal_queue_flush(device.queue, &point));
    }
    check(hal_point_wait(point, HAL_WAIT_FOREVER));
    Lock lock;
    check_indices(device_at(index));
}

} // namespace halyard

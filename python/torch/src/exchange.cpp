// What leaves PyTorch's operators: DLPack, graphs of recorded operations, and
// collectives. Python's sides are _share.py, _compile.py and _distributed.py; handles are numbers.
#include <cstring>
#include <map>

#include <ATen/ops/empty.h>
#include <torch/library.h>

#include "cell.h"
#include "index_check.h"

namespace halyard
{
namespace
{

// Objects that Python names by numbers. Under the lock.
template <class T> class Handles
{
  public:
    int64_t add(T *object)
    {
        objects_[next_] = object;
        return next_++;
    }
    T *at(int64_t handle) const
    {
        const auto found = objects_.find(handle);
        TORCH_CHECK(found != objects_.end(), "halyard: a handle that was destroyed");
        return found->second;
    }
    T *take(int64_t handle)
    {
        T *object = at(handle);
        objects_.erase(handle);
        return object;
    }

  private:
    std::map<int64_t, T *> objects_;
    int64_t next_ = 1;
};

// ---- DLPack ----

// The address of a DLManagedTensorVersioned in the memory of the tensor, which is read-only, or of a
// copy in memory of the host.
int64_t to_dlpack(const Tensor &tensor, bool copies)
{
    Lock lock;
    const Array array = array_of(tensor);
    ops_tensor memory;
    check(ops_array_get_tensor(array, &memory));
    ops_dlpack_managed *managed = nullptr;
    check(ops_tensor_to_dlpack(array.context(), &memory, copies, &managed));
    managed->flags |= copies ? 0 : OPS_DLPACK_READ_ONLY;
    return (int64_t)(intptr_t)managed;
}

// The same without a copy and without a wait, where the device's memory has addresses for DLPack: work that
// `stream` of DLPack's consumer gets after the call comes after the tensor's.
int64_t to_dlpack_stream(const Tensor &tensor, int64_t stream)
{
    Lock lock;
    const Array array = array_of(tensor);
    ops_tensor memory;
    check(ops_array_get_tensor(array, &memory));
    ops_dlpack_managed *managed = nullptr;
    check(ops_tensor_to_dlpack_stream(array.context(), &memory, stream, &managed));
    managed->flags |= OPS_DLPACK_READ_ONLY;
    return (int64_t)(intptr_t)managed;
}

// Kind and index of a device in DLPack's terms; kind 0 where others cannot address its memory.
std::vector<int64_t> dlpack_device(int64_t device)
{
    Lock lock;
    const ops_dlpack_device found = ops_dlpack_device_of(context_at(device));
    return {found.kind, found.index};
}

int64_t dlpack_stream(int64_t device)
{
    Lock lock;
    int64_t stream = OPS_DLPACK_NO_STREAM;
    check(ops_dlpack_get_stream(context_at(device), &stream));
    return stream;
}

// DLManagedTensor, the form before version 1.0.
struct LegacyExport {
    ops_dlpack_tensor tensor;
    void *owner;
    void (*destroy)(LegacyExport *legacy);
};

template <class Export> void release_export(void *user)
{
    auto *managed = static_cast<Export *>(user);
    if (managed->destroy) {
        managed->destroy(managed);
    }
}

template <class Export> Tensor share_export(int64_t address, int64_t device)
{
    auto *managed = (Export *)(intptr_t)address;
    TORCH_CHECK(managed->tensor.type.code != OPS_DLPACK_COMPLEX,
                "from_dlpack: complex numbers on a GPU: pass a tensor of the processor");
    Lock lock;
    ops_context *context = context_at(device);
    ops_tensor tensor;
    check(ops_tensor_share_dlpack(context, &managed->tensor, OPS_DLPACK_READ_ONLY,
                                  release_export<Export>, managed, &tensor));
    ops_array *array = ops_array_from_tensor(context, &tensor);
    ops_tensor_release(&tensor);
    return tensor_of(Array(array), device);
}

// A tensor in the memory of another library's export, which is destroyed after the last use of the memory;
// not after an error. The memory is not to be written as long as the tensor lives.
Tensor share_dlpack(int64_t address, bool is_versioned, int64_t device)
{
    return is_versioned ? share_export<ops_dlpack_managed>(address, device)
                        : share_export<LegacyExport>(address, device);
}

void destroy_dlpack(int64_t address)
{
    auto *managed = (ops_dlpack_managed *)(intptr_t)address;
    managed->destroy(managed);
}

void release_source(void *user)
{
    delete static_cast<Tensor *>(user);
}

// A tensor in the memory of one of the processor, or a copy of it where the device does not use that
// memory in place. The memory is not to be written as long as the tensor lives.
Tensor share_from_host(const Tensor &source, int64_t device)
{
    TORCH_CHECK(source.is_cpu(), "share_from_host: expected a tensor of the processor");
    ops_dlpack_tensor memory{};
    memory.data = source.numel() ? source.data_ptr() : nullptr;
    memory.device = {OPS_DLPACK_HOST, 0};
    memory.rank = (int32_t)source.dim();
    memory.type = ops_dlpack_type_of(type_of(source.scalar_type()));
    memory.shape = const_cast<int64_t *>(source.sizes().data());
    memory.strides = const_cast<int64_t *>(source.strides().data());
    if (source.numel() == 0 || type_of(source.scalar_type()) == HAL_TYPE_NONE) {
        return source.to(c10::Device(c10::DeviceType::PrivateUse1, (c10::DeviceIndex)device));
    }
    Lock lock;
    ops_context *context = context_at(device);
    ops_tensor tensor;
    auto *kept = new Tensor(source);
    if (ops_tensor_share_dlpack(context, &memory, OPS_DLPACK_READ_ONLY, release_source, kept,
                                &tensor) != HAL_OK) {
        delete kept;
        check(ops_tensor_from_dlpack(context, &memory, &tensor));
    }
    Array array(ops_array_from_tensor(context, &tensor));
    ops_tensor_release(&tensor);
    return tensor_of(std::move(array), device);
}

// ---- Graphs ----

Handles<ops_graph> &graphs()
{
    static auto *handles = new Handles<ops_graph>;
    return *handles;
}

// Inputs of a graph fill their memory in row-major order.
void prepare_inputs(const std::vector<Tensor> &inputs)
{
    Lock lock;
    for (const Tensor &tensor : inputs) {
        Cell *cell = Cell::of(tensor);
        TORCH_CHECK(tensor.is_contiguous() && tensor.storage_offset() == 0 &&
                        cell->bytes == (size_t)tensor.numel() * tensor.itemsize(),
                    "halyard: an input of a graph that does not fill its storage");
        const Array own = array_of(tensor);
        cell->set(Array(ops_array_copy(own)));
        check(ops_array_evaluate(&cell->value, 1));
        cell->is_read = false;
    }
}

// Which inputs operators have read: a gradient that is not wanted leaves out operands.
std::vector<int64_t> inputs_read(const std::vector<Tensor> &inputs)
{
    Lock lock;
    std::vector<int64_t> read;
    for (size_t i = 0; i < inputs.size(); i++) {
        if (Cell::of(inputs[i])->is_read) {
            read.push_back((int64_t)i);
        }
    }
    return read;
}

void begin_graph(int64_t device)
{
    Lock lock;
    Device &d = device_at(device);
    evaluate_deferred(d);
    check(hal_queue_flush(d.queue, nullptr));
    check_indices(d);
    check(ops_graph_begin(d.context));
    d.records_graph = true;
}

std::vector<ops_array *> values_of(const std::vector<Tensor> &tensors)
{
    std::vector<ops_array *> values;
    for (const Tensor &tensor : tensors) {
        values.push_back(Cell::of(tensor)->as(type_of(tensor.scalar_type())));
    }
    return values;
}

// Ends the recording; no outputs: drops it. The outputs hold nothing afterwards.
int64_t end_graph(int64_t device, const std::vector<Tensor> &inputs,
                  const std::vector<Tensor> &outputs)
{
    Lock lock;
    Device &d = device_at(device);
    d.records_graph = false;
    while (d.deferred) { // what was recorded is computed by launches only
        d.deferred->forget_deferred();
    }
    const std::vector<ops_array *> in = values_of(inputs), out = values_of(outputs);
    ops_graph *graph = nullptr;
    check(ops_graph_end(d.context, in.data(), (uint32_t)in.size(), out.data(), (uint32_t)out.size(),
                        &graph));
    return graphs().add(graph);
}

std::vector<Tensor> launch_graph(int64_t handle, int64_t device, const std::vector<Tensor> &inputs,
                                 int64_t output_count)
{
    Lock lock;
    std::vector<Array> arrays;
    std::vector<ops_array *> in, out((size_t)output_count);
    for (const Tensor &tensor : inputs) {
        arrays.push_back(array_of(tensor));
        in.push_back(arrays.back());
    }
    check(ops_graph_launch(graphs().at(handle), in.data(), (uint32_t)in.size(), out.data(),
                           (uint32_t)out.size()));
    std::vector<Tensor> results;
    for (ops_array *array : out) {
        results.push_back(tensor_of(Array(array), device));
    }
    return results;
}

void destroy_graph(int64_t handle)
{
    Lock lock;
    ops_graph_destroy(graphs().take(handle));
}

// ---- Collectives ----

Handles<hal_comm> &comms()
{
    static auto *handles = new Handles<hal_comm>;
    return *handles;
}

Tensor new_comm_id()
{
    hal_comm_id id;
    check(hal_comm_id_create(&id));
    Tensor bytes = at::empty({(int64_t)sizeof id.bytes}, at::kByte);
    std::memcpy(bytes.mutable_data_ptr(), id.bytes, sizeof id.bytes);
    return bytes;
}

// Waits for the other ranks, without the lock.
int64_t create_comm(int64_t device, const Tensor &id, int64_t rank, int64_t count, double seconds)
{
    hal_comm_options options{};
    TORCH_CHECK(id.numel() == (int64_t)sizeof options.id.bytes, "halyard: not a communicator's id");
    std::memcpy(options.id.bytes, id.const_data_ptr(), sizeof options.id.bytes);
    options.rank = (uint32_t)rank;
    options.count = (uint32_t)count;
    options.time_limit_ns = (uint64_t)(seconds * 1e9);
    hal_device *own;
    {
        Lock lock;
        own = device_at(device).device;
    }
    hal_comm *comm = nullptr;
    check(hal_comm_create(own, &options, &comm));
    Lock lock;
    return comms().add(comm);
}

void destroy_comm(int64_t handle)
{
    Lock lock;
    hal_comm_destroy(comms().take(handle));
}

hal_range range_of(const ops_tensor &tensor, uint64_t count)
{
    const uint64_t size = hal_type_size(tensor.type);
    return {tensor.buffer, (uint64_t)tensor.offset * size, count * size};
}

// Records a collective on the device's queue: the elements of `input` in row-major order are sent, and
// `received` elements come back as a tensor of rank 1. `count` is the collective's.
Tensor collective(int64_t handle, int64_t kind, int64_t reduction, int64_t root,
                  const Tensor &input, int64_t count, int64_t received)
{
    Lock lock;
    const int64_t device = input.device().index();
    ops_context *context = context_at(device);
    const Array sent(ops_array_copy(array_of(input)));
    ops_tensor source, target;
    check(ops_array_get_tensor(sent, &source));
    check(ops_tensor_create(context, source.type, 1, &received, &target));
    hal_collective options{};
    options.kind = (uint32_t)kind;
    options.reduction = (uint32_t)reduction;
    options.root = (uint32_t)root;
    options.type = source.type;
    const hal_status status =
        hal_queue_collective(device_at(device).queue, comms().at(handle), &options,
                             range_of(source, (uint64_t)input.numel()),
                             range_of(target, (uint64_t)received), (uint64_t)count);
    if (status != HAL_OK) {
        ops_tensor_release(&target);
        check(status);
    }
    Array result(ops_array_from_tensor(context, &target));
    ops_tensor_release(&target);
    return tensor_of(std::move(result), device);
}

TORCH_LIBRARY_FRAGMENT(halyard, library)
{
    library.def("to_dlpack(Tensor tensor, bool copies) -> int", to_dlpack);
    library.def("to_dlpack_stream(Tensor tensor, int stream) -> int", to_dlpack_stream);
    library.def("dlpack_device(int device) -> int[]", dlpack_device);
    library.def("dlpack_stream(int device) -> int", dlpack_stream);
    library.def("share_dlpack(int address, bool is_versioned, int device) -> Tensor", share_dlpack);
    library.def("destroy_dlpack(int address) -> ()", destroy_dlpack);
    library.def("share_from_host(Tensor source, int device) -> Tensor", share_from_host);
    library.def("prepare_inputs(Tensor[] inputs) -> ()", prepare_inputs);
    library.def("begin_graph(int device) -> ()", begin_graph);
    library.def("inputs_read(Tensor[] inputs) -> int[]", inputs_read);
    library.def("end_graph(int device, Tensor[] inputs, Tensor[] outputs) -> int", end_graph);
    library.def("launch_graph(int graph, int device, Tensor[] inputs, int count) -> Tensor[]",
                launch_graph);
    library.def("destroy_graph(int graph) -> ()", destroy_graph);
    library.def("new_comm_id() -> Tensor", new_comm_id);
    library.def("create_comm(int device, Tensor id, int rank, int count, float seconds) -> int",
                create_comm);
    library.def("destroy_comm(int comm) -> ()", destroy_comm);
    library.def("collective(int comm, int kind, int reduction, int root, Tensor input, int count, "
                "int received) -> Tensor",
                collective);
}

} // namespace
} // namespace halyard

"""torch.distributed's backend "halyard": collectives in the order of the device's queue.

    torch.distributed.init_process_group("halyard")

Calls return at once; what is done with the tensors afterwards comes after the collective. Sums are
added in the order of the ranks, so their bits do not depend on timing (docs/communicators.md).
"""
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future
from torch.futures import Future

_ops = torch.ops.halyard
_ALL_REDUCE, _ALL_GATHER, _REDUCE_SCATTER, _BROADCAST, _REDUCE, _ALL_TO_ALL, _EXCHANGE = range(7)
_REDUCTIONS = {dist.ReduceOp.SUM: 0, dist.ReduceOp.AVG: 1, dist.ReduceOp.MIN: 2, dist.ReduceOp.MAX: 3}


def _done(result):
    future = Future()
    future.set_result(result)
    return _create_work_from_future(future)


def _reduction(opts) -> int:
    for kind, number in _REDUCTIONS.items():
        if opts.reduceOp == kind:
            return number
    raise NotImplementedError(f"halyard: expected SUM, AVG, MIN or MAX, got {opts.reduceOp}")


class ProcessGroup(dist.ProcessGroup):
    """The ranks of a communicator of hal."""

    def __init__(self, store, rank, size, timeout):
        self._comm = None
        super().__init__(rank, size)
        self._rank, self._size = rank, size
        device = torch.halyard.current_device()
        if rank == 0:
            store.set("halyard_comm_id", bytes(_ops.new_comm_id().tolist()))
        identity = torch.tensor(list(store.get("halyard_comm_id")), dtype=torch.uint8)
        self._device = torch.device("halyard", device)
        self._comm = _ops.create_comm(device, identity, rank, size, timeout.total_seconds())

    def getBackendName(self):
        return "halyard"

    def name(self):
        return "halyard"

    @property
    def pg_name(self):
        return dist.distributed_c10d._world.pg_names[self]

    @property
    def group_name(self):
        return self.pg_name

    def _collect(self, kind, tensor, count, received, reduction=0, root=0):
        return _ops.collective(self._comm, kind, reduction, root, tensor, count, received)

    def allreduce(self, tensors, opts=None):
        for tensor in tensors:
            if tensor.numel():
                n, number = tensor.numel(), 0 if opts is None else _reduction(opts)
                tensor.copy_(self._collect(_ALL_REDUCE, tensor.detach(), n, n, number).view_as(tensor))
        return _done(tensors)

    def allreduce_coalesced(self, tensors, opts=None):
        return self.allreduce(tensors, opts)

    def broadcast(self, tensors, opts):
        for tensor in tensors:
            if tensor.numel():
                n = tensor.numel()
                result = self._collect(_BROADCAST, tensor.detach(), n, n, root=opts.rootRank)
                tensor.copy_(result.view_as(tensor))
        return _done(tensors)

    def reduce(self, tensors, opts):
        for tensor in tensors:
            n = tensor.numel()
            result = self._collect(_REDUCE, tensor.detach(), n, n, _reduction(opts), opts.rootRank)
            if self._rank == opts.rootRank:
                tensor.copy_(result.view_as(tensor))
        return _done(tensors)

    def allgather(self, output_lists, inputs, opts=None):
        for outputs, tensor in zip(output_lists, inputs):
            n = tensor.numel()
            parts = self._collect(_ALL_GATHER, tensor.detach(), n, n * self._size).split(n)
            for output, part in zip(outputs, parts):
                output.copy_(part.view_as(output))
        return _done(output_lists)

    def all_gather_single(self, output, tensor, opts=None):
        n = tensor.numel()
        output.copy_(self._collect(_ALL_GATHER, tensor.detach(), n, n * self._size).view_as(output))
        return _done([output])

    def all_gather_single_coalesced(self, outputs, inputs, opts=None):
        for output, tensor in zip(outputs, inputs):
            self.all_gather_single(output, tensor)
        return _done(outputs)

    def reduce_scatter_single(self, output, tensor, opts):
        n = output.numel()
        result = self._collect(_REDUCE_SCATTER, tensor.detach(), n, n, _reduction(opts))
        output.copy_(result.view_as(output))
        return _done([output])

    def reduce_scatter(self, outputs, input_lists, opts):
        for output, parts in zip(outputs, input_lists):
            self.reduce_scatter_single(output, torch.cat([part.flatten() for part in parts]), opts)
        return _done(outputs)

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts):
        for output, tensor in zip(outputs, inputs):
            self.reduce_scatter_single(output, tensor, opts)
        return _done(outputs)

    def all_to_all_single(self, output, tensor, output_sizes, input_sizes, opts=None):
        if len(set(output_sizes)) > 1 or len(set(input_sizes)) > 1:
            raise NotImplementedError("halyard: all_to_all of parts of different sizes")
        n = tensor.numel()
        result = self._collect(_ALL_TO_ALL, tensor.detach(), n // self._size, n)
        output.copy_(result.view_as(output))
        return _done([output])

    def alltoall(self, outputs, inputs, opts=None):
        joined = torch.cat([tensor.flatten() for tensor in inputs])
        n = joined.numel() // self._size
        for output, part in zip(outputs, self._collect(_ALL_TO_ALL, joined, n, joined.numel()).split(n)):
            output.copy_(part.view_as(output))
        return _done(outputs)

    # The names up to PyTorch 2.14.
    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    alltoall_base = all_to_all_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # An exchange goes both ways; what the sender receives is dropped.
    def send(self, tensors, rank, tag=0):
        for tensor in tensors:
            self._collect(_EXCHANGE, tensor.detach(), tensor.numel(), tensor.numel(), root=rank)
        return _done(tensors)

    def recv(self, tensors, rank, tag=0):
        for tensor in tensors:
            n = tensor.numel()
            result = self._collect(_EXCHANGE, tensor.detach(), n, n, root=rank)
            tensor.copy_(result.view_as(tensor))
        return _done(tensors)

    def barrier(self, opts=None):
        token = torch.zeros(1, dtype=torch.int32, device=self._device)
        self._collect(_ALL_REDUCE, token, 1, 1).item()
        return _done([])

    def shutdown(self):
        if self._comm is not None:
            torch.halyard.synchronize(self._device)
            _ops.destroy_comm(self._comm)
            self._comm = None

    def __del__(self):
        self.shutdown()


def _create(store, rank, size, timeout):
    return ProcessGroup(store, rank, size, timeout)


def _start():
    if dist.is_available():
        dist.Backend.register_backend("halyard", _create, devices=["halyard"])

"""torch.compile(backend="halyard"): each graph of operations is recorded once, as a graph of kernels,
and launched by later calls. Graphs with random numbers, operators of the processor or reads run as
without compile."""
import torch
from torch import fx

_ops = torch.ops.halyard


def _filling(tensor):
    """The tensor, or a copy that is contiguous and fills its storage."""
    fills = tensor.is_contiguous() and tensor.untyped_storage().nbytes() == tensor.numel() * tensor.itemsize
    return tensor if fills else tensor.clone(memory_format=torch.contiguous_format)


class _Recorded:
    """A graph of PyTorch that runs itself first and its recording later."""

    def __init__(self, module):
        self._module = module
        self._calls = 0
        self._graph = None
        outputs = next(node for node in module.graph.nodes if node.op == "output").args[0]
        self._outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        self._places = {node: i for i, node in enumerate(placeholders)}
        self._used = [i for i, node in enumerate(placeholders)
                      if any(user.op != "output" for user in node.users)]
        self._made = [node for node in self._outputs
                      if isinstance(node, fx.Node) and node not in self._places]
        self._can_record = bool(self._made) and len(set(self._made)) == len(self._made) and all(
            torch.Tag.nondeterministic_seeded not in node.target.tags
            for node in module.graph.nodes if isinstance(node.target, torch._ops.OpOverload))

    def __call__(self, *arguments):
        if self._graph is None:
            self._calls += 1
            if self._calls != 2 or not self._can_record or not self._record(arguments):
                return self._module(*arguments)
        return self._launch(arguments)

    def _inputs(self, arguments):
        return [arguments[i] for i in self._used]

    def _record(self, arguments):
        inputs = self._inputs(arguments)
        self._can_record = all(
            isinstance(t, torch.Tensor) and t.device.type == "halyard" and t.numel()
            for t in inputs) and bool(inputs)
        if not self._can_record:
            return False
        self._device = inputs[0].device.index
        stand_ins = [t.detach().clone(memory_format=torch.contiguous_format) for t in inputs]
        given = list(arguments)
        for i, t in zip(self._used, stand_ins):
            given[i] = t
        try:
            _ops.prepare_inputs(stand_ins)
            _ops.begin_graph(self._device)
            try:
                with torch.halyard.no_fallback():
                    results = self._module(*given)
                made = [_filling(r) for node, r in zip(self._outputs, results)
                        if isinstance(node, fx.Node) and node not in self._places]
                self._sizes = [r.size() for r in made]
                whole = all(r.numel() for r in made)
                read = _ops.inputs_read(stand_ins)
                self._used, stand_ins = [self._used[i] for i in read], [stand_ins[i] for i in read]
            except Exception:
                whole, made = False, []
            graph = _ops.end_graph(self._device, stand_ins, made if whole else [])
        except (RuntimeError, NotImplementedError):
            self._can_record = False
            return False
        if not whole:
            _ops.destroy_graph(graph)
            self._can_record = False
            return False
        self._graph = graph
        return True

    def _launch(self, arguments):
        inputs = [t.detach() for t in self._inputs(arguments)]
        results = _ops.launch_graph(self._graph, self._device, inputs, len(self._made))
        made = iter(result.view(size) for result, size in zip(results, self._sizes))
        return [node if not isinstance(node, fx.Node) else
                arguments[self._places[node]] if node in self._places else next(made)
                for node in self._outputs]

    def __del__(self):
        if self._graph is not None:
            _ops.destroy_graph(self._graph)


def backend(module, inputs, **options):
    """The backend's function: what autograd makes of a module is recorded."""
    from functorch.compile import make_boxed_func
    from torch._dynamo.backends.common import aot_autograd

    def compiler(graph, _):
        return make_boxed_func(_Recorded(graph))
    return aot_autograd(fw_compiler=compiler)(module, inputs, **options)

"""Steps that are recorded once and launched with other inputs."""
from . import _core
from . import _dtypes as dt
from ._core import Array

__all__ = ["compile"]


class Compiled:
    """What ``compile`` makes of a function; ``count`` is the number of recordings so far."""

    def __init__(self, function):
        self._function = function
        self._recorded = {}
        self.count = 0
        self.__name__ = getattr(function, "__name__", "compiled")
        self.__doc__ = function.__doc__

    def __call__(self, *arguments):
        arrays = [x for x in arguments if isinstance(x, Array)]
        if not arrays:
            raise TypeError("compile: expected at least one array among the arguments")
        key = tuple((x.shape, x._type, x._context) if isinstance(x, Array) else x
                    for x in arguments)
        recorded = self._recorded.get(key)
        if recorded is None:
            recorded = self._recorded[key] = self._record(arguments, arrays)
        graph, inputs, kinds, single = recorded
        made = _core.graph_launch(graph, [arrays[i] for i in inputs], len(kinds))
        made = [_core.complex_view(x) if is_complex else x for x, is_complex in zip(made, kinds)]
        return made[0] if single else tuple(made)

    def _record(self, arguments, arrays):
        """The graph, the places of the arrays that it reads, and what it returns."""
        context = arrays[0]._context
        copies = [_core.copy(x) for x in arrays]  # they fill their memory
        _core.evaluate(copies)
        taken = iter(copies)
        _core.graph_begin(context)
        made = None
        try:
            made = self._function(*[next(taken) if isinstance(x, Array) else x for x in arguments])
            results = (made,) if isinstance(made, Array) else tuple(made)
            if not all(isinstance(x, Array) for x in results):
                raise TypeError("compile: expected a function that returns arrays")
        except BaseException:
            try:
                _core.graph_end(context, (), ())  # drops the recording
            except ValueError:
                pass
            raise
        # A result that is one of the inputs is made anew by each launch.
        results = tuple(_core.copy(x) if any(x is y for y in copies) else x for x in results)
        graph = _core.graph_end(context, tuple(copies), results)
        self.count += 1
        kinds = [dt.is_complex(x.dtype) for x in results]
        return graph, range(len(arrays)), kinds, isinstance(made, Array)


def compile(function):
    """The function as a step that is recorded at its first call and then launched, which costs the
    host little more than to submit its kernels.

    ``function`` takes arrays and hashable values, and returns an array or several; it uses each of
    its arrays, reads none of their elements, and makes no arrays of lists, of ints beyond 2**53 or of
    other libraries' arrays: they are made before. Calls with other shapes, dtypes, devices or values
    record again. Arrays that it uses besides its arguments keep the elements that they have at the
    recording.

    >>> import halyard as hx
    >>> step = hx.compile(lambda x, w: hx.tanh(x @ w) + 1)
    >>> step(hx.ones((2, 3)), hx.zeros((3, 4))).shape
    (2, 4)
    """
    return Compiled(function)

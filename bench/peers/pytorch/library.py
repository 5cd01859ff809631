"""libhalyard_ops in this process, for programs that time it and PyTorch in turns (turns.py)."""
import contextlib
import ctypes
import os
from ctypes import POINTER, Structure, byref, c_double, c_int, c_int64, c_uint32, c_uint64, c_void_p

MAX_SPATIAL, WAIT_FOREVER = 3, 2**64 - 1
# hal_type of a tensor's elements.
TYPES = {"torch.float16": 10, "torch.bfloat16": 11, "torch.float32": 12}
# Results, and the functions that have them.
RETURNS = {
    c_int: ("hal_device_open", "hal_queue_create", "hal_queue_wait", "ops_context_create",
            "ops_scope_begin", "ops_scope_end", "ops_array_evaluate", "ops_array_read",
            "ops_array_attention_gradients"),
    c_void_p: ("ops_array_from_host", "ops_array_keep", "ops_array_convolution",
               "ops_array_convolution_transposed", "ops_array_convolution_weights",
               "ops_array_scaled_attention"),
    ctypes.c_char_p: ("hal_status_message",),
    None: ("ops_array_release",),
}


class ConvolutionOptions(Structure):
    """ops_convolution_options."""
    _fields_ = [("size", c_uint32), ("channels_last", c_uint32), ("precision", c_uint32),
                ("activation", c_uint32), ("groups", c_int64)] + [
                    (name, c_int64 * MAX_SPATIAL)
                    for name in ("stride", "dilation", "before", "after")]


def numbers(values):
    return (c_int64 * len(values))(*values)


def convolution_options(cell):
    """Of a cell of convolution.py."""
    options = ConvolutionOptions(channels_last=int(cell["last"]), groups=cell["groups"])
    options.size = ctypes.sizeof(options)
    for i in range(cell["rank"]):
        options.stride[i], options.dilation[i] = cell["stride"][i], cell["dilation"][i]
        options.before[i] = options.after[i] = cell["padding"][i]
    return options


class Library:
    """A context on the device that HAL_BACKEND selects. Arrays are pointers."""

    def __init__(self, path, threads):
        os.environ["HAL_CPU_THREADS"] = str(threads)
        self.library = ctypes.CDLL(path)
        for result, names in RETURNS.items():
            for name in names:
                getattr(self.library, name).restype = result
        self.device, self.queue, self.context = c_void_p(), c_void_p(), c_void_p()
        self.check(self.library.hal_device_open(None, byref(self.device)))
        self.check(self.library.hal_queue_create(self.device, byref(self.queue)))
        self.check(self.library.ops_context_create(self.queue, byref(self.context)))

    def check(self, status):
        if status:
            raise RuntimeError(self.library.hal_status_message().decode())

    def array(self, tensor):
        """An evaluated array with the elements of a tensor, which the caller releases."""
        x = tensor.contiguous()
        return self.keep(self.library.ops_array_from_host(
            self.context, TYPES[str(x.dtype)], x.dim(), numbers(x.shape), c_void_p(x.data_ptr())))

    def keep(self, array):
        if not array:
            raise RuntimeError(self.library.hal_status_message().decode())
        return c_void_p(self.library.ops_array_keep(c_void_p(array)))

    def release(self, arrays):
        for array in arrays:
            self.library.ops_array_release(array)

    def read(self, array, tensor):
        """Computes an array and copies it to a contiguous tensor of its shape."""
        self.check(self.library.ops_array_read(
            c_void_p(array), c_uint64(tensor.element_size() * tensor.numel()), c_void_p(tensor.data_ptr())))
        return tensor

    @contextlib.contextmanager
    def scope(self):
        self.check(self.library.ops_scope_begin(self.context))
        yield
        self.check(self.library.ops_scope_end(self.context))

    def compute(self, make):
        """Evaluates the arrays that make() returns, and waits."""
        self.library.ops_scope_begin(self.context)
        arrays = make()
        if not all(arrays):
            self.check(1)
        self.check(self.library.ops_array_evaluate((c_void_p * len(arrays))(*arrays),
                                                   c_uint32(len(arrays))))
        self.library.ops_scope_end(self.context)
        self.check(self.library.hal_queue_wait(self.queue, c_uint64(WAIT_FOREVER)))

    def convolution(self, options, x, w, bias):
        return self.library.ops_array_convolution(byref(options), x, w, bias)

    def convolution_transposed(self, options, x, w, bias, lengths):
        return self.library.ops_array_convolution_transposed(byref(options), x, w, bias, lengths)

    def convolution_weights(self, options, x, dy, window):
        return self.library.ops_array_convolution_weights(byref(options), x, dy, window)

    def attention(self, q, k, v, causal):
        return self.library.ops_array_scaled_attention(q, k, v, None, c_int(causal), c_uint32(0),
                                                       c_double(0))

    def attention_gradients(self, q, k, v, y, dy, causal):
        gradients = (c_void_p * 3)()
        self.check(self.library.ops_array_attention_gradients(
            q, k, v, None, y, dy, c_int(causal), c_uint32(0), c_double(0), gradients))
        return list(gradients)


def find(path):
    """The library: `path`, or that of the release build of this tree."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), *[os.pardir] * 3)
    return path or os.path.join(root, "build", "release", "lib", "libhalyard_ops.so")

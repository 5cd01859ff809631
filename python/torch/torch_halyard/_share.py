"""DLPack of tensors on halyard: without a copy on processors and on devices of the cuda plugin, elsewhere
as memory of the host.

torch.from_dlpack, numpy.from_dlpack and the like take halyard's tensors. An export is a snapshot that
is read-only: an operation in place on the tensor makes new memory. torch.halyard.from_dlpack takes
memory of the host, and of a GPU that the device is on, which is not to be written as long as the tensor
lives.
"""
import ctypes

import torch

_ops = torch.ops.halyard
_HOST, _GPU, _OTHER = (1, 0), 2, 12  # kDLCPU, kDLCUDA, kDLExtDev
_VERSIONED, _LEGACY = b"dltensor_versioned", b"dltensor"
_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_api.PyCapsule_IsValid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_api.PyCapsule_SetName.argtypes = [ctypes.c_void_p, ctypes.c_char_p]


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _destroy(capsule):
    """Of a capsule that no one took."""
    if _api.PyCapsule_IsValid(capsule, _VERSIONED):
        _ops.destroy_dlpack(_api.PyCapsule_GetPointer(capsule, _VERSIONED))


def _is_on_processor(tensor) -> bool:
    return torch.halyard.get_device_name(tensor.device).startswith("cpu:")


def _device(tensor):
    if _is_on_processor(tensor):
        return _HOST
    kind, index = _ops.dlpack_device(tensor.device.index)
    return (kind, index) if kind == _GPU else (_OTHER, tensor.device.index)


def _capsule(tensor, *, stream=None, max_version=None, dl_device=None, copy=None):
    if tensor.requires_grad:
        raise BufferError("__dlpack__: the tensor requires grad: use tensor.detach()")
    own = _device(tensor)
    wanted = own if dl_device is None else (int(dl_device[0]), dl_device[1])
    is_versioned = max_version is not None and max_version[0] >= 1
    if wanted == own and own[0] == _GPU and is_versioned and not copy:
        address = _ops.to_dlpack_stream(tensor, 1 if stream is None else stream)
    elif wanted != _HOST or (own != _HOST and copy is False):
        raise BufferError("__dlpack__: halyard exports memory of the host, and of GPUs by the cuda plugin to "
                          "consumers of DLPack 1.0 without a copy: pass dl_device=(1, 0)")
    elif not is_versioned:  # without a mark for read-only memory
        return tensor.cpu().__dlpack__()
    else:
        address = _ops.to_dlpack(tensor, bool(copy) or own != _HOST)
    return _api.PyCapsule_New(address, _VERSIONED, ctypes.cast(_destroy, ctypes.c_void_p))


def _device_with(place, device):
    """The index of the device of halyard that has the memory of `place`, in DLPack's terms."""
    found = [torch.halyard._index(device)]
    if device is None:
        found += [i for i in range(torch.halyard.device_count())
                  if i not in found and torch.halyard.get_device_name(i).startswith("cuda:")]
    for index in found:
        if tuple(_ops.dlpack_device(index)) == place:
            return index
    raise BufferError(f"from_dlpack: source: expected memory of the host or of {device or 'a device of halyard'}, "
                      f"got that of GPU {place[1]}: copy it to the processor")


def from_dlpack(source, device=None):
    """A tensor on halyard in the memory of any object with __dlpack__ of the host, where the device does
    not use memory of the host in place a copy; or of a GPU, on the device of the cuda plugin that is this
    GPU, whose work then comes after that of the source's stream."""
    kind, number = source.__dlpack_device__()
    if int(kind) != _GPU:
        return _ops.share_from_host(torch.from_dlpack(source), torch.halyard._index(device))
    index = _device_with((_GPU, number), device)
    stream = _ops.dlpack_stream(index)
    try:
        capsule = source.__dlpack__(stream=stream, max_version=(1, 0))
    except TypeError:  # older than DLPack 1.0
        capsule = source.__dlpack__(stream=stream)
    is_versioned = bool(_api.PyCapsule_IsValid(id(capsule), _VERSIONED))
    name = _VERSIONED if is_versioned else _LEGACY
    tensor = _ops.share_dlpack(_api.PyCapsule_GetPointer(id(capsule), name), is_versioned, index)
    _api.PyCapsule_SetName(id(capsule), b"used_dltensor_versioned" if is_versioned else b"used_dltensor")
    return tensor


def _start():
    """Makes PyTorch's tensors export those of halyard."""
    capsule, device = torch.Tensor.__dlpack__, torch.Tensor.__dlpack_device__

    def __dlpack__(self, *arguments, **options):
        if self.device.type != "halyard":
            return capsule(self, *arguments, **options)
        return _capsule(self, **options)

    def __dlpack_device__(self):
        return _device(self) if self.device.type == "halyard" else device(self)

    torch.Tensor.__dlpack__, torch.Tensor.__dlpack_device__ = __dlpack__, __dlpack_device__

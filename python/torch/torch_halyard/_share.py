"""DLPack of tensors on halyard: as memory of the host, without a copy where the device is a processor.

torch.from_dlpack, numpy.from_dlpack and the like take halyard's tensors. An export is a snapshot that
is read-only: an operation in place on the tensor makes new memory. torch.halyard.from_dlpack takes
memory of the host, which is not to be written as long as the tensor lives.
"""
import ctypes

import torch

_ops = torch.ops.halyard
_HOST, _OTHER = (1, 0), 12  # kDLCPU, kDLExtDev
_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_api.PyCapsule_IsValid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_NAME = b"dltensor_versioned"


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _destroy(capsule):
    """Of a capsule that no one took."""
    if _api.PyCapsule_IsValid(capsule, _NAME):
        _ops.destroy_dlpack(_api.PyCapsule_GetPointer(capsule, _NAME))


def _is_on_processor(tensor) -> bool:
    return torch.halyard.get_device_name(tensor.device).startswith("cpu:")


def _device(tensor):
    return _HOST if _is_on_processor(tensor) else (_OTHER, tensor.device.index)


def _capsule(tensor, *, stream=None, max_version=None, dl_device=None, copy=None):
    if tensor.requires_grad:
        raise BufferError("__dlpack__: the tensor requires grad: use tensor.detach()")
    is_host = _is_on_processor(tensor)
    wanted = _device(tensor) if dl_device is None else tuple(dl_device)
    if wanted != _HOST or (not is_host and copy is False):
        raise BufferError("__dlpack__: halyard exports memory of the host: pass dl_device=(1, 0)")
    if max_version is None or max_version[0] < 1:  # without a mark for read-only memory
        return tensor.cpu().__dlpack__()
    copies = bool(copy) or not is_host
    address = _ops.to_dlpack(tensor, copies)
    return _api.PyCapsule_New(address, _NAME, ctypes.cast(_destroy, ctypes.c_void_p))


def from_dlpack(source, device=None):
    """A tensor on halyard in the memory of any object with __dlpack__ of the host; on devices that do
    not use memory of the host in place, a copy."""
    tensor = torch.from_dlpack(source)
    return _ops.share_from_host(tensor, torch.halyard._index(device))


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

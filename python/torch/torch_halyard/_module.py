"""Modules move to and from halyard with their parameters. PyTorch changes parameters in place for its own devices
and makes others for the rest: modules that share one, such as the embedding and the output of a language model,
would have one each from then on, and an optimizer that was made before would keep the old ones."""
import functools
import threading

import torch
from torch.__future__ import (get_swap_module_params_on_conversion as swaps,
                              set_swap_module_params_on_conversion as set_swaps)


# Conversions of all threads, one after the other: the flag that makes PyTorch swap parameters is the process's.
_lock = threading.RLock()


class _Crosses(Exception):
    """A conversion that moves a tensor to halyard or away from it."""


def _start():
    """Called once, when the library is loaded."""
    torch.nn.Module._apply = _keeping_parameters(torch.nn.Module._apply)


def _is_ours(tensor) -> bool:
    return tensor.device.type == "halyard"


def _keeping_parameters(apply):
    @functools.wraps(apply)
    def wrapped(module, fn, *args, **kwargs):
        if isinstance(fn, _Watch):  # of a module within one whose conversion holds the lock
            return apply(module, fn, *args, **kwargs)
        with _lock:
            return _converted(apply, module, fn, args, kwargs)
    return wrapped


def _converted(apply, module, fn, args, kwargs):
    if swaps():
        return apply(module, fn, *args, **kwargs)
    try:
        return apply(module, _Watch(fn), *args, **kwargs)
    except _Crosses:
        set_swaps(True)
    kept = [(p, p.grad, dict(p.__dict__)) for p in module.parameters()]
    try:
        return apply(module, fn, *args, **kwargs)
    except RuntimeError as error:
        if "Couldn't swap" not in str(error):
            raise
    finally:
        set_swaps(False)
        while kept:
            _restore(*kept.pop(), fn)
    # A parameter that others refer to weakly: PyTorch makes another one.
    return apply(module, _Watch(fn, False), *args, **kwargs)


def _restore(parameter, grad, attributes, fn):
    """Gives a parameter what swapping takes: its attributes, its hooks, and a gradient that another tensor shares."""
    parameter.__dict__.update(attributes)
    for name in ("_backward_hooks", "_post_accumulate_grad_hooks"):
        if getattr(parameter, name) is not None:
            setattr(parameter, name, getattr(parameter, name))  # registers them with the new implementation
    if grad is not None and parameter.grad is None:
        with torch.no_grad():
            is_moved = (grad.device, grad.dtype) == (parameter.device, parameter.dtype)
            parameter.grad = grad if is_moved else fn(grad).requires_grad_(grad.requires_grad)


class _Watch:
    """A conversion that ends before the first parameter changes, where its device does."""

    def __init__(self, fn, ends=True):
        self.fn, self.ends = fn, ends

    def __call__(self, tensor):
        result = self.fn(tensor)
        if self.ends and isinstance(result, torch.Tensor) and _is_ours(tensor) != _is_ours(result):
            raise _Crosses
        return result

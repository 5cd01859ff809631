"""Devices, the current one, errors, and what is known of the machine."""
import json as _json
import os as _os
import shutil as _shutil
import subprocess as _subprocess
import threading as _threading

from . import _core
from . import _dtypes

# The cpu plugin computes long batches on a thread, so that waits end by Ctrl-C.
_os.environ.setdefault("HAL_CPU_BACKGROUND", "2000")

__all__ = ["Device", "conformance", "devices", "info", "Error", "DeviceLost", "Unsupported", "default_device"]


class Error(RuntimeError):
    """An error of hal; the text is hal's message, ``status`` the number of its kind."""

    status = 0


class DeviceLost(Error):
    """The device is lost: its arrays hold nothing any more."""


class Unsupported(Error, NotImplementedError):
    """The device lacks what the operation needs."""


class ArgumentError(Error, ValueError):
    """An argument that ops or hal refuses."""


class DeviceMemoryError(Error, MemoryError):
    """No memory is left on the device or on the host."""


class NotFound(Error, LookupError):
    """No such plugin, device or file."""


_ERRORS = {1: ArgumentError, 4: Unsupported, 5: DeviceMemoryError, 6: NotFound, 9: NotFound,
           15: DeviceLost}


def make_error(status, message):
    error = _ERRORS.get(status, Error)(message or f"hal status {status}")
    error.status = status
    return error


class Device:
    """A device by its selection, such as ``"cpu"``, ``"opencl:0"`` or ``"auto"``.

    It is opened when it is used first. In ``with device:`` arrays are made on it.

    >>> import halyard as hx
    >>> with hx.Device("cpu"):
    ...     x = hx.ones(3)
    >>> x.device
    Device('cpu:0')
    """

    _known = {}
    _lock = _threading.Lock()

    def __new__(cls, selection="auto"):
        if isinstance(selection, Device):
            return selection
        name = selection.strip() if isinstance(selection, str) else selection
        with cls._lock:
            if name in cls._known:
                return cls._known[name]
            self = super().__new__(cls)
            if name is None or not _is_full_name(name):
                context = _core.Context(name)
                facts = context.info()
                full = f"{facts['plugin']}:{facts['index']}"
                known = cls._known.get(full)
                if known is not None:
                    cls._known[name] = known
                    return known
                self._context_or_none = context
                context.set_owner(self)
            else:
                full = name
                self._context_or_none = None
            self.name = full
            cls._known[full] = cls._known[name] = self
            return self

    @property
    def _context(self):
        context = self._context_or_none
        if context is None:
            context = _core.Context(self.name)
            context.set_owner(self)
            self._context_or_none = context
        return context

    def __repr__(self):
        return f"Device({self.name!r})"

    def __str__(self):
        return self.name

    def __eq__(self, other):
        return self is other or (isinstance(other, str) and other in (self.name, self._plugin))

    def __hash__(self):
        return hash(self.name)

    @property
    def _plugin(self):
        return self.name.partition(":")[0]

    @property
    def _index(self):
        return int(self.name.partition(":")[2] or 0)

    def __enter__(self):
        _stack().append(self)
        return self

    def __exit__(self, *error):
        _stack().pop()

    def synchronize(self):
        """Submits what is recorded and waits for all work of the device. Ctrl-C ends the wait."""
        self._context.wait()

    def info(self):
        """Properties of the device, a dict: name, driver, kind, memory in bytes, dtypes. ``quirks``
        has lines of what hal found wrong in the driver; ``plugin_quirks`` lists what the plugin
        knows of it as dicts: ``name``, ``reason``, and ``active``, False where a variable of the
        environment turned it off."""
        facts = self._context.info()
        facts["plugin_quirks"] = _core.quirks(self.name)
        facts["dtypes"] = [d.name for d in self._dtypes()]
        return facts

    def memory(self):
        """Memory of the device in bytes, a dict: total, free, in use, pooled."""
        return self._context.memory()

    def statistics(self):
        """Counters of operations, kernels and arrays since the device was opened, a dict."""
        return self._context.statistics()

    def _dtypes(self):
        facts = self._context.info()
        values = facts["arithmetic_types"]
        return [d for d in _dtypes.all_dtypes
                if _dtypes.part_of(d) is not _dtypes.float64 or
                values >> _dtypes.float64._type & 1]


def _is_full_name(name):
    plugin, _, index = name.partition(":")
    return plugin.isidentifier() and index.isdigit()


_local = _threading.local()


def _stack():
    stack = getattr(_local, "stack", None)
    if stack is None:
        stack = _local.stack = []
    return stack


_default = None


def default_device():
    """The device of new arrays: that of the innermost ``with``, else that of HAL_BACKEND."""
    global _default
    stack = getattr(_local, "stack", None)
    if stack:
        return stack[-1]
    if _default is None:
        _default = Device(None)
    return _default


def context_of(device):
    if device is None:
        return default_device()._context
    return Device(device)._context


def dlpack_context(kind, index):
    """The context whose memory has DLPack's kind and index."""
    if kind == 2:
        return Device(f"cuda:{index}")._context
    context = default_device()._context
    if kind in (1, 3) and _core.dlpack_device(context)[0] != 1:
        context = Device("cpu")._context
    return context


def devices():
    """All devices that plugins find, a tuple of Device; the one that is used by default first."""
    found = _core.registry()
    names = [f"{plugin['name']}:{index}" for plugin in found["plugins"]
             for index in range(len(plugin["devices"])) if plugin["status"] == "HAL_OK"]
    first = default_device()
    return (first,) + tuple(Device(name) for name in names if name != first.name)


def info():
    """What the machine has, a dict: plugins with their devices, why one is missing, the choice.
    Opens each device for its ``plugin_quirks``, as in ``Device.info()``; a device that does not
    open has none and its ``message`` says why."""
    found = _core.registry()
    for plugin in found["plugins"]:
        for index, device in enumerate(plugin["devices"]):
            try:
                device["plugin_quirks"] = _core.quirks(f"{plugin['name']}:{index}")
            except Error as error:
                device["plugin_quirks"], device["message"] = [], str(error)
    return found


def conformance(device=None, *, level="core", filter=None, quick=True, timeout=None):
    """Tests a device by the program hal-conformance, in processes of their own: a dict with the
    counts ``passed``, ``failed``, ``unsupported``, ``expected_failures`` and the list ``failures``
    of (name, what happened). ``level`` is core, ops, stress or comm; ``filter`` chooses cases by
    their names; ``quick`` takes a few that cover all of level core, in seconds. ``timeout`` is in
    seconds; subprocess.TimeoutExpired ends it."""
    device = default_device() if device is None else Device(device)
    program = _os.path.join(_os.path.dirname(_core.__file__), "lib", "hal-conformance")
    if not _os.path.exists(program):
        program = _shutil.which("hal-conformance")
    if program is None:
        raise NotFound("conformance: the program hal-conformance is not installed")
    command = [program, "--device", device.name, "--level", level, "--json", "-"]
    command += ["--filter", filter] if filter is not None else ["--quick"] if quick else []
    ran = _subprocess.run(command, stdout=_subprocess.PIPE, stderr=_subprocess.PIPE, text=True,
                          timeout=timeout)
    if not ran.stdout.startswith("{"):
        raise Error(f"conformance: {ran.stderr.strip()[-1000:]}")
    report = _json.loads(ran.stdout)
    made = dict(report["summary"])
    made["failures"] = [(case["name"], case["detail"]) for case in report["cases"]
                        if case["status"] == "failed"]
    return made

"""The tests use the device of HAL_BACKEND, by default the processor."""
import os

os.environ.setdefault("HAL_BACKEND", "cpu")

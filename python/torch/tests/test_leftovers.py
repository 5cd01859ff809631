"""Training leaves nothing behind: the short form of tools/leftovers.py."""
import os
import sys

import pytest
import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tools"))
import leftovers  # noqa: E402


@pytest.mark.parametrize("name", leftovers.CASES)
def test_steps_leave_nothing(name):
    first, last = leftovers.measure(name, 200, warm=60)
    assert leftovers.leftovers(first, last) == []


def test_leftovers_are_found():
    step, kept = leftovers.training("perceptron"), []
    for _ in range(20):
        step()
    torch.halyard.empty_cache()  # memory that other tests left would serve the tensors
    first = leftovers.counts()
    for i in range(50):
        step()
        kept.append((torch.zeros(1000, device="halyard") + i, os.open("/dev/null", os.O_RDONLY)))
    found = leftovers.leftovers(first, leftovers.counts())
    for _, descriptor in kept:
        os.close(descriptor)
    assert {"arrays", "descriptors", "bytes"} <= set(found)

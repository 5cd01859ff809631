"""The most memory of a training step on halyard and on a device of PyTorch, each case in a process of its own.

memory.py [--device halyard:0] [--peer cuda|cpu] [--steps N] [CASE ...]

Megabytes that tensors use at most, and that the device keeps at most with its pool, in each of the steps of
training.py's cases. PyTorch's processor has no pool; what it uses is counted by its profiler.
"""
import argparse
import multiprocessing

import torch

from training import CASES


def allocations(profile):
    """Bytes that each call of the processor's allocator adds, in order."""
    from torch._C._profiler import _EventType
    left, found = list(profile.profiler.kineto_results.experimental_event_tree()), []
    while left:
        event = left.pop()
        left += event.children
        if event.tag == _EventType.Allocation:
            found.append((event.start_time_ns, event.extra_fields.alloc_size))
    return [size for _, size in sorted(found, key=lambda pair: pair[0])]


def measure_processor(name, steps):
    """The most of all steps: a profile counts only what was allocated while it ran."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        step = CASES[name](torch.device("cpu"))
        for _ in range(steps):
            step()
    used = most = 0
    for size in allocations(profile):
        used += size
        most = max(most, used)
    return [(most / 1e6, None)]


def measure(device, name, steps):
    """Pairs of megabytes for each step: used and kept."""
    torch.manual_seed(1)
    torch.backends.cudnn.allow_tf32 = False
    if device.startswith("halyard"):
        import torch_halyard  # noqa: F401
    device = torch.device(device)
    if device.type == "cpu":
        return measure_processor(name, steps)
    backend, peaks = getattr(torch, device.type), []
    step = CASES[name](device)
    for _ in range(steps):
        backend.synchronize()
        backend.reset_peak_memory_stats()
        step()
        backend.synchronize()
        peaks.append((backend.max_memory_allocated() / 1e6, backend.max_memory_reserved() / 1e6))
    return peaks


def text_of(peaks):
    return ", ".join(f"{used:,.0f}" + (f" ({kept:,.0f})" if kept else "") for used, kept in peaks)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="halyard:0")
    parser.add_argument("--peer", default="cpu")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    arguments = parser.parse_args()
    print(f"PyTorch {torch.__version__}: MB used at most (and kept) in each step; the ratio of the last steps' used")
    for name in arguments.cases or CASES:
        answers = []
        for device in (arguments.device, arguments.peer):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                answers.append(pool.apply(measure, (device, name, arguments.steps)))
            print(f"{name}: {device}: {text_of(answers[-1])}", flush=True)
        print(f"{name}: {answers[0][-1][0] / answers[1][-1][0]:.2f}", flush=True)


if __name__ == "__main__":
    main()

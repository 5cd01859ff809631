"""Times eager operations, recurrent steps, and networks of linear layers on halyard and on a device of
PyTorch, eager and as CUDA graphs. Each device has a process of its own: where a device from outside is
registered, PyTorch's own backward on CUDA is another one.

networks.py [--device halyard:0] [--peer cuda|cpu] [--warm S] [--seconds S]

Microseconds, the least of the runs that fit into the seconds, after others that fit into those of --warm
(halyard compiles kernels in the background meanwhile). Operations: a chain on 1,024 floats.
RNN: h = tanh(x W + h U + b). LSTM: forward, backward and Adam. Networks: 8 layers relu(x W + b).
"""
import argparse
import json
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

import overhead

CELLS = ((1, 64), (1, 256), (1, 1024), (1, 4096), (16, 64), (16, 256), (16, 1024), (64, 64),
         (64, 256), (64, 1024), (512, 256), (512, 1024), (4096, 1024))
OPERATIONS = 1000


def synchronize(device):
    if device.type != "cpu":
        getattr(torch, device.type).synchronize()


def least_time(function, device, seconds, parts=1, clock=time.perf_counter, warm=0):
    """Microseconds, by a clock, of a part of function(), with all that it leaves to be computed."""
    for _ in range(3):
        function()
    synchronize(device)
    end = time.perf_counter() + warm
    while time.perf_counter() < end:
        function()
        synchronize(device)
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = clock()
        function()
        synchronize(device)
        best = min(best, clock() - begin)
    return best / parts * 1e6


def chain(run):
    def make(device):
        x = torch.rand(1024).to(device)
        return lambda: run(x, OPERATIONS), OPERATIONS
    return make


def recurrent(batch, width, steps=50):
    def make(device):
        weights = [(torch.rand(width, width) / width).to(device) for _ in range(2)]
        x, bias = torch.rand(batch, width).to(device), torch.rand(width).to(device)

        def run():
            h = torch.zeros_like(x)
            for _ in range(steps):
                h = torch.tanh(torch.addmm(bias, x, weights[0]) + h @ weights[1])
            return h
        return run, steps
    return make


def lstm_step(device):
    model = overhead.Recurrent().to(device)
    x, labels = torch.rand(16, 16, 32).to(device), (torch.arange(16) % 10).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

    def run():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss.item()
    return run, 1


def network(batch, width):
    def make(device):
        layers = [nn.Linear(width, width) for _ in range(8)]
        model = nn.Sequential(*(m for layer in layers for m in (layer, nn.ReLU()))).to(device)
        x = torch.rand(batch, width).to(device)
        return lambda: model(x), 1
    return make


def cases():
    for name, run in overhead.OPERATIONS.items():
        yield f"operation {name}", chain(run), False
    for batch, width in ((1, 128), (64, 128)):
        yield f"RNN step B{batch} H{width}", recurrent(batch, width), True
    yield "LSTM training step", lstm_step, False
    for batch, width in CELLS:
        yield f"network B{batch} H{width}", network(batch, width), True


def graph_time(make, device, seconds):
    """The time of a CUDA graph of one run."""
    run, parts = make(device)
    run()
    synchronize(device)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return least_time(graph.replay, device, seconds, parts)


def measure(name, seconds, warm):
    """Prints a line of JSON with the device, one a case, and one with the fallbacks."""
    if name.startswith("halyard"):
        import torch_halyard  # noqa: F401
    device = torch.device(name)
    print(json.dumps(torch.halyard.get_device_name(device) if device.type == "halyard" else name),
          flush=True)
    for case, make, has_graph in cases():
        with torch.set_grad_enabled("LSTM" in case):
            torch.manual_seed(1)
            run, parts = make(device)
            times = [least_time(run, device, seconds, parts, warm=warm)]
        if device.type == "cuda" and has_graph:
            with torch.no_grad():
                times.append(graph_time(make, device, seconds))
        print(json.dumps([case, times]), flush=True)
    print(json.dumps(torch.halyard.fallbacks() if device.type == "halyard" else {}), flush=True)


def measured(device, arguments):
    command = [sys.executable, __file__, "--seconds", str(arguments.seconds), "--warm", str(arguments.warm),
               "--only", device]
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            print(device, line, end="", file=sys.stderr, flush=True)
            lines.append(json.loads(line))
    if process.returncode:
        raise SystemExit(f"{device}: exit status {process.returncode}")
    name, *lines, fallbacks = lines
    return name, dict(lines), fallbacks


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="halyard:0")
    parser.add_argument("--peer", default="cpu")
    parser.add_argument("--warm", type=float, default=0)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only:
        measure(arguments.only, arguments.seconds, arguments.warm)
        return
    name, ours, fallbacks = measured(arguments.device, arguments)
    _, peers, _ = measured(arguments.peer, arguments)
    print(f"{arguments.device}: {name}; PyTorch {torch.__version__} {arguments.peer}")
    print("us: halyard | peer eager | peer CUDA graph")
    for case, times in ours.items():
        times += peers[case]
        ratios = ", ".join(f"{t / times[0]:.2f}" for t in times[1:])
        print(f"{case}: {' | '.join(f'{t:.2f}' for t in times)} ({ratios})")
    print(f"fallbacks: {fallbacks or 'none'}")


if __name__ == "__main__":
    main()

"""Times eager operations on few elements, and training steps, on halyard and on PyTorch's processor.

overhead.py [--device halyard:0] [--operations N] [--repeats N]

Operations: microseconds of the process's time for each of a chain on 1,024 floats, the least of the
repeats, in turns with the processor. Steps: milliseconds of forward, backward and optimizer.
"""
import argparse
import time

import torch
import torch.nn.functional as F
from torch import nn


def chain_unary(function):
    def run(x, count):
        for _ in range(count):
            x = function(x)
        return x
    return run


def chain_binary(function):
    def run(x, count):
        y = x
        for _ in range(count):
            y = function(x, y)
        return y
    return run


def in_place(x, count):
    x = x.clone()
    for _ in range(count):
        x.neg_()
    return x


OPERATIONS = {
    "neg": chain_unary(torch.neg), "relu": chain_unary(torch.relu), "tanh": chain_unary(torch.tanh),
    "x * y": chain_binary(torch.mul), "x + y": chain_binary(torch.add),
    "x * 0.5": chain_unary(lambda x: x * 0.5), "neg_": in_place}


def mlp(*widths):
    layers = []
    for n, m in zip(widths, widths[1:]):
        layers += [nn.Linear(n, m), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.LSTM(32, 64), nn.Linear(64, 10)

    def forward(self, x):
        return self.out(self.cell(x)[0][-1])


def models():
    """A name, the model, its input and the classes."""
    yield "MLP 64-128-128-10, batch 16", mlp(64, 128, 128, 10), torch.randn(16, 64)
    yield "MLP 784-512-512-10, batch 32", mlp(784, 512, 512, 10), torch.randn(32, 784)
    yield "LSTM 32-64, 16 steps, batch 16", Recurrent(), torch.randn(16, 16, 32)
    convolutions = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                                 nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
                                 nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
    yield "ConvNet 3-16-32, 16x16, batch 16", convolutions, torch.randn(16, 3, 16, 16)
    block = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    head = nn.Sequential(block, nn.Flatten(), nn.Linear(64 * 16, 10))
    yield "transformer block 64, 16 tokens, batch 16", head, torch.randn(16, 16, 64)


def time_of(function, repeats, clock):
    best = float("inf")
    for _ in range(repeats):
        begin = clock()
        function()
        best = min(best, clock() - begin)
    return best


def operation_times(device, count, repeats):
    x = torch.rand(1024)
    for name, run in OPERATIONS.items():
        figures = []
        for place in (device, "cpu"):
            operand = x.to(place)

            def work():
                run(operand, count)
                if place != "cpu":
                    torch.halyard.synchronize(device)
            work()
            figures.append(time_of(work, repeats, time.process_time) / count * 1e6)
        print(f"{name}: {figures[0]:.2f} us, PyTorch's processor {figures[1]:.2f}")


def step_times(device, repeats):
    for name, model, x in models():
        figures = []
        state = model.state_dict()
        for place in (device, "cpu"):
            model.load_state_dict(state)
            model.to(place)
            operand, labels = x.to(place), (torch.arange(16 if x.dim() > 2 else len(x)) % 10).to(place)
            optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)

            def step():
                optimizer.zero_grad()
                loss = F.cross_entropy(model(operand), labels)
                loss.backward()
                optimizer.step()
                return loss.item()
            for _ in range(5):
                step()
            figures.append(time_of(step, 20 * repeats, time.perf_counter) * 1e3)
        print(f"{name}: {figures[0]:.2f} ms a step, PyTorch's processor {figures[1]:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="halyard:0")
    parser.add_argument("--operations", type=int, default=10000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    import torch_halyard  # noqa: F401, here: training.py measures PyTorch's devices without it
    torch.set_num_threads(1)
    print(f"{arguments.device}: {torch.halyard.get_device_name(arguments.device)}; PyTorch "
          f"{torch.__version__}, 1 thread of its processor")
    operation_times(arguments.device, arguments.operations, arguments.repeats)
    step_times(arguments.device, arguments.repeats)


if __name__ == "__main__":
    main()

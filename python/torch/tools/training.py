"""Times training steps of networks on halyard and on a device of PyTorch, each in a process of its own.

training.py [--device halyard:0] [--peer cuda|cpu] [--seconds S] [--limit S] [--json FILE]
            [--host-time FOLDER] [CASE ...]

Milliseconds, the least of the runs that fit into the seconds, and megabytes that the device keeps after
them. A case that has no result after the limit is skipped with its process. The names of cases that end
in bf16 run under autocast.

--host-time: the host's share of the steps on the cuda plugin, without a GPU: FOLDER has a CUDA driver whose
kernels do nothing (build/release/tests/cuda_mock), and the milliseconds are processor time of one thread.
"""
import argparse
import json
import os
import selectors
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

import overhead
from networks import least_time

VOCABULARY = 10000


def trained(model, device, data, optimizer=torch.optim.Adam, narrow=False):
    """A step: the loss's gradients, and new parameters. `data`: inputs and classes, on the processor."""
    model = model.to(device)
    inputs, labels = (t.to(device) for t in data)
    steps = optimizer(model.parameters(), lr=1e-4)

    def step():
        steps.zero_grad()
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=narrow):
            logits = model(inputs)
            loss = F.cross_entropy(logits.flatten(0, -2), labels.flatten())
        loss.backward()
        steps.step()
        return loss.item()
    return step


class Rnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.out = nn.RNN(128, 128), nn.Linear(128, 10)

    def forward(self, x):
        return self.out(self.cells(x)[0][-1])


class CellLoop(nn.Module):
    """A cell of PyTorch, called for every time step by Python."""

    def __init__(self, kind):
        super().__init__()
        self.cell, self.out = kind(32, 64), nn.Linear(64, 10)

    def forward(self, x):
        state = None
        for values in x:
            state = self.cell(values, state)
        return self.out(state[0] if isinstance(state, tuple) else state)


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity() if stride == 1 and inputs == outputs else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def resnet18():
    """ResNet-18 for images of 32 x 32."""
    layers, inputs = [nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU()], 64
    for i, width in enumerate((64, 128, 256, 512)):
        layers += [Residual(inputs, width, 2 if i else 1), Residual(width, width, 1)]
        inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.split, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"),
                                 nn.Linear(4 * width, width))

    def forward(self, x):
        q, k, v = (t.unflatten(2, (self.heads, -1)).transpose(1, 2)
                   for t in self.split(self.norm1(x)).chunk(3, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.merge(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, layers, width, heads, length, vocabulary):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(GptBlock(width, heads) for _ in range(layers)))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.out.weight = self.tokens.weight

    def forward(self, i):
        places = self.places(torch.arange(i.size(1), device=i.device))
        return self.out(self.norm(self.blocks(self.tokens(i) + places)))


class LanguageModel(nn.Module):
    """Two layers of LSTM, 650 wide."""

    def __init__(self):
        super().__init__()
        self.tokens, self.cells = nn.Embedding(VOCABULARY, 650), nn.LSTM(650, 650, 2)
        self.out = nn.Linear(650, VOCABULARY)

    def forward(self, i):
        return self.out(self.cells(self.tokens(i))[0])


def classes(count, *shape):
    return torch.randint(count, shape)


def parameters(device):
    """100 small parameters with gradients."""
    shapes = [(i % 7 * 3 + 3,) if i % 3 else (i % 5 + 2, i % 4 + 3) for i in range(100)]
    values = [nn.Parameter(torch.randn(shape).to(device)) for shape in shapes]
    for value in values:
        value.grad = torch.randn(value.shape).to(device)
    return values


def adam(device):
    return torch.optim.Adam(parameters(device), lr=1e-4, foreach=True).step


def clip(device):
    values = parameters(device)
    return lambda: nn.utils.clip_grad_norm_(values, 1.0)


def step_of(name):
    """The model and the data of overhead.py."""
    def make(device):
        model, x = next((m, x) for n, m, x in overhead.models() if n == name)
        rows = x.size(1) if name.startswith("LSTM") else len(x)
        return trained(model, device, (x, torch.arange(rows) % 10))
    return make


def language_model(narrow):
    return lambda d: trained(LanguageModel(), d, (classes(VOCABULARY, 35, 20),
                                                  classes(VOCABULARY, 35, 20)), narrow=narrow)


def gpt2(narrow):
    return lambda d: trained(Gpt(12, 768, 12, 256, 50257), d, (classes(50257, 4, 256),
                                                              classes(50257, 4, 256)),
                             torch.optim.AdamW, narrow)


def resnet(narrow):
    return lambda d: trained(resnet18(), d, (torch.rand(128, 3, 32, 32), classes(10, 128)),
                             torch.optim.SGD, narrow)


CASES = {
    "Adam, 100 parameters": adam,
    "clip_grad_norm_, 100 parameters": clip,
    "RNN 128-128, 32 steps, batch 64": lambda d: trained(
        Rnn(), d, (torch.rand(32, 64, 128), classes(10, 64))),
    "LSTMCell 32-64, 16 steps, batch 16": lambda d: trained(
        CellLoop(nn.LSTMCell), d, (torch.rand(16, 16, 32), classes(10, 16))),
    "GRUCell 32-64, 16 steps, batch 16": lambda d: trained(
        CellLoop(nn.GRUCell), d, (torch.rand(16, 16, 32), classes(10, 16))),
    "LSTM language model 2 x 650, batch 20 x 35": language_model(False),
    "LSTM language model 2 x 650, batch 20 x 35, bf16": language_model(True),
    "ResNet-18, batch 128 of 32 x 32": resnet(False),
    "ResNet-18, batch 128 of 32 x 32, bf16": resnet(True),
    "GPT-2 12 x 768, batch 4 x 256": gpt2(False),
    "GPT-2 12 x 768, batch 4 x 256, bf16": gpt2(True),
    "GPT 4 x 128, batch 16 x 64": lambda d: trained(
        Gpt(4, 128, 4, 64, 256), d, (classes(256, 16, 64), classes(256, 16, 64)), torch.optim.AdamW),
    **{name: step_of(name) for name, _, _ in overhead.models()},
}


def kept_megabytes(device):
    if device.type == "cpu":
        return None
    return getattr(torch, device.type).memory_reserved() / 1e6


def without_values(step):
    """The step where no kernel computes: its loss is any number, and its indices may be out of range."""
    def run():
        try:
            step()
            torch.halyard.synchronize()
        except IndexError:
            pass
    return run


def measure(device, names, seconds, host_time):
    """Prints a line of JSON a case: its name, milliseconds, megabytes, and fallbacks or an error."""
    device = torch.device(device)
    clock = time.process_time if host_time else time.perf_counter
    if host_time:
        torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False  # float32 is float32, as it is for PyTorch's products
    for name in names:
        torch.manual_seed(1)
        try:
            step = CASES[name](device)
            step = without_values(step) if host_time else step
            result = [least_time(step, device, seconds, clock=clock) / 1e3, kept_megabytes(device)]
            result.append(torch.halyard.fallbacks(reset=True) if device.type == "halyard" else {})
            del step
            if device.type != "cpu":
                getattr(torch, device.type).empty_cache()
        except Exception as error:  # the other cases are measured all the same
            result = [None, None, str(error).splitlines()[0]]
        print(json.dumps([name, *result]), flush=True)


def measured(device, names, seconds, limit, driver):
    """Pairs of a case and its result: a process measures them, another one continues after a failure.
    `driver`: the folder of --host-time, or None."""
    left = list(names)
    options, environment = ["--seconds", str(seconds)], dict(os.environ)
    if driver:
        options += ["--host-time", driver]
        paths = os.path.abspath(driver), os.environ.get("LD_LIBRARY_PATH")
        environment.update(LD_LIBRARY_PATH=":".join(filter(None, paths)), HAL_BACKEND="cuda", HAL_PROBE="off",
                           HAL_CACHE_DIR="off")
    while left:
        command = [sys.executable, __file__, *options, "--only", device, *left]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0, env=environment)
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while left and selector.select(limit) and (line := process.stdout.readline()):
                name, *result = json.loads(line)
                left.remove(name)
                yield name, result
        if left:
            process.kill()
            yield left.pop(0), [None, None, f"no result, exit status {process.wait()}"]
        process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="halyard:0")
    parser.add_argument("--peer", default="cpu")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--limit", type=float, default=120)
    parser.add_argument("--json")
    parser.add_argument("--host-time", metavar="FOLDER")
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    arguments = parser.parse_args()
    names = arguments.cases or list(CASES)
    if arguments.only:
        if arguments.only.startswith("halyard"):
            import torch_halyard  # noqa: F401
        measure(arguments.only, names, arguments.seconds, arguments.host_time)
        return
    print(f"PyTorch {torch.__version__}: ms, MB, fallbacks or an error")
    results = {}
    for device in (arguments.device,) if arguments.host_time else (arguments.device, arguments.peer):
        for name, result in measured(device, names, arguments.seconds, arguments.limit, arguments.host_time):
            results.setdefault(name, {})[device] = result
            print(f"{device}: {name}: {result}", flush=True)
            if arguments.json:
                with open(arguments.json, "w") as file:
                    json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()

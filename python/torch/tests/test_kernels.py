"""How many kernels and transfers programs take: fusion must not be lost unnoticed. None of these
programs copies anything between host and device.

A context compiles the kernels of its first 16 plans at once; later plans may run as single kernels at
first (docs/batching.md). So each process counts few programs: this file is also the program that does.
"""
import functools
import json
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
import torch_halyard  # noqa: F401

DEVICE = "halyard"
IN_A_PROCESS = 6


def made(*shapes):
    generator = torch.Generator().manual_seed(2)
    return [torch.randn(*shape, generator=generator).to(DEVICE) for shape in shapes]


SQUARE = (64, 64)

# name: shapes of the operands, the program, and its kernels
CASES = {
    "chain": ([SQUARE] * 3, lambda x, y, z: torch.tanh(x * y + z), 1),
    "all kept": ([SQUARE] * 3, lambda x, y, z: [a := x * y, b := a + z, torch.tanh(b)], 1),
    "dead": ([SQUARE] * 2, lambda x, y: (torch.tanh(x * y), x + y)[1], 1),
    "scalars": ([SQUARE], lambda x: (x * 2 + 1).clamp(0, 1), 1),
    "compare": ([SQUARE] * 2, lambda x, y: torch.where(x > y, x, y * 2), 1),
    "gelu": ([SQUARE], lambda x: F.gelu(x, approximate="tanh"), 1),
    "silu": ([SQUARE], lambda x: F.silu(x) * 2, 1),
    "hardswish": ([SQUARE], lambda x: F.hardswish(x), 1),
    "lerp": ([SQUARE] * 2, lambda x, y: torch.lerp(x, y, 0.3), 1),
    "addcmul": ([SQUARE] * 3, lambda x, y, z: torch.addcmul(x, y, z, value=0.5), 1),
    "in place": ([SQUARE] * 2, lambda x, y: x.clone().mul_(y).add_(1).relu_(), 1),
    "transposed": ([SQUARE], lambda x: torch.tanh(x.t() + 1), 1),
    "bias": ([SQUARE, (64,)], lambda x, y: torch.relu(x + y), 1),
    "cast": ([SQUARE], lambda x: (x.half() * 2).float(), 1),
    "sum": ([SQUARE], lambda x: (x * x).sum(1), 1),
    "mean": ([SQUARE], lambda x: (x - 1).mean(), 1),
    "max": ([SQUARE], lambda x: x.abs().amax(1), 1),
    "norm": ([SQUARE], lambda x: torch.linalg.vector_norm(x, dim=1), 1),
    "softmax": ([SQUARE], lambda x: torch.softmax(x, 1), 1),
    "log softmax": ([SQUARE], lambda x: torch.log_softmax(x, 1), 1),
    "layer norm": ([SQUARE, (64,), (64,)], lambda x, w, b: F.layer_norm(x, (64,), w, b), 1),
    "rms norm": ([SQUARE, (64,)], lambda x, w: x * torch.rsqrt(x.square().mean(1, keepdim=True) + 1e-6) * w, 1),
    "variance": ([SQUARE], lambda x: x.var(1), 1),
    "logsumexp": ([SQUARE], lambda x: x.logsumexp(1), 1),
    "mse": ([SQUARE] * 2, lambda x, y: F.mse_loss(x, y), 1),
    "linear": ([SQUARE, SQUARE, (64,)], lambda x, w, b: F.linear(x, w, b), 1),
    "linear relu": ([SQUARE, SQUARE, (64,)], lambda x, w, b: torch.relu(F.linear(x, w, b)), 1),
    "linear gelu": ([SQUARE, SQUARE, (64,)], lambda x, w, b: F.gelu(F.linear(x, w, b)), 1),
    "matmul": ([SQUARE] * 2, lambda x, y: x @ y.t(), 1),
    "batched": ([(4, 32, 32)] * 2, lambda x, y: torch.bmm(x, y) * 0.5, 1),
    "stack": ([SQUARE] * 2, lambda x, y: torch.stack([x * 2, y + 1]), 1),
    "cat": ([SQUARE] * 2, lambda x, y: torch.cat([x, y], 1), 1),
    "gather": ([SQUARE], lambda x: x[:, 1:3] * 2, 1),
    "tril": ([SQUARE], lambda x: x.tril() + 1, 1),
    "cumsum": ([SQUARE], lambda x: x.cumsum(1), 1),
    "dropout": ([SQUARE], lambda x: F.dropout(x, 0.5), 1),
    "zeros": ([SQUARE], lambda x: torch.zeros_like(x) + x, 1),
    "copies": ([SQUARE], lambda x: x.clone(), 0),
}


def training_step(x, y, z):
    for tensor in (x, y, z):
        tensor.requires_grad_()
    torch.tanh(x * y + z).sigmoid().sum().backward()
    return x.grad, y.grad, z.grad


def updates(x):
    a = torch.zeros_like(x)
    for i in range(20):
        a += x * i
    return a


CASES["training step"] = ([SQUARE] * 3, training_step, 1)
CASES["loop of updates"] = ([SQUARE], updates, 2)
CASES["narrow gradient of log softmax"] = ([SQUARE] * 2, lambda g, y: torch.ops.aten._log_softmax_backward_data(
    g.bfloat16(), y.bfloat16(), 1, torch.bfloat16), 1)
# Two products, the second with the sum of both, and the cell.
CASES["lstm cell"] = ([(4, 8), (4, 12), (4, 12), (48, 8), (48, 12), (48,), (48,)],
                      lambda x, h, c, w, v, a, b: torch.lstm_cell(x, (h, c), w, v, a, b), 3)


CASES["gru cell"] = ([(4, 8), (4, 12), (36, 8), (36, 12), (36,), (36,)],
                     lambda x, h, w, v, a, b: torch.gru_cell(x, h, w, v, a, b), 3)


def count(name):
    """The kernels and copied bytes of one program, whose results are kept until they are computed."""
    shapes, program, _ = CASES[name]
    tensors = made(*shapes)
    torch.halyard.synchronize()
    def counters():
        return torch.halyard.statistics()["kernels"], torch.halyard.memory_stats()["copied_bytes"]
    before = counters()
    result = program(*tensors)
    torch.halyard.synchronize()
    del result
    return [now - then for now, then in zip(counters(), before)]


@functools.cache
def counts_of_group(group):
    names = list(CASES)[group * IN_A_PROCESS:(group + 1) * IN_A_PROCESS]
    command = [sys.executable, __file__, *names]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("name", CASES)
def test_kernels(name):
    group = list(CASES).index(name) // IN_A_PROCESS
    assert counts_of_group(group)[name] == [CASES[name][2], 0]


if __name__ == "__main__":
    torch.halyard.set_fallback("error")
    print(json.dumps({name: count(name) for name in sys.argv[1:]}))

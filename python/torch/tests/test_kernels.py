"""How many kernels programs take: fusion must not be lost unnoticed."""
import pytest
import torch
import torch.nn.functional as F

DEVICE = "halyard"


def made(*shapes):
    generator = torch.Generator().manual_seed(2)
    tensors = [torch.randn(*shape, generator=generator).to(DEVICE) for shape in shapes]
    torch.halyard.synchronize()
    return tensors


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
    "tril": ([SQUARE], lambda x: x.tril() + 1, 3),
    "cumsum": ([SQUARE], lambda x: x.cumsum(1), 1),
    "dropout": ([SQUARE], lambda x: F.dropout(x, 0.5), 1),
    "zeros": ([SQUARE], lambda x: torch.zeros_like(x) + x, 1),
    "copies": ([SQUARE], lambda x: x.clone(), 0),
}


RUNS = 60  # until the fused kernel is compiled: at first single ones take its place (batching.md)


def recorded(counter, tensors, program, expected):
    """The kernels of the first run that has at most the expected ones, or of the last run."""
    for _ in range(RUNS):
        with counter:
            result = program(*tensors)  # kept until the values are computed
            torch.halyard.synchronize()
        del result
        if counter.kernels <= expected:
            break
    return counter.kernels


@pytest.mark.parametrize("name", CASES)
def test_kernels(name, counter, strict):
    shapes, program, kernels = CASES[name]
    assert recorded(counter, made(*shapes), program, kernels) == kernels


def test_a_training_step(counter, strict):
    x, y, z = (t.requires_grad_() for t in made(*[SQUARE] * 3))

    def step(*_):
        torch.tanh(x * y + z).sigmoid().sum().backward()
    assert recorded(counter, (), step, 3) <= 3


def test_a_loop_of_updates(counter, strict):
    x, = made(SQUARE)

    def loop(*_):
        a = torch.zeros_like(x)
        for i in range(20):
            a += x * i
        return a
    assert recorded(counter, (), loop, 2) <= 2

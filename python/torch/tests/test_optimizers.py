"""A step of an optimizer over many parameters is a kernel or a few, not some for each parameter."""
import pytest
import torch
import torch_halyard  # noqa: F401

DEVICE = "halyard"
OPTIMIZERS = {
    "sgd": lambda p, **k: torch.optim.SGD(p, lr=0.01, momentum=0.9, weight_decay=1e-3, nesterov=True, **k),
    "adam": lambda p, **k: torch.optim.Adam(p, lr=0.01, **k),
    "amsgrad": lambda p, **k: torch.optim.Adam(p, lr=0.01, amsgrad=True, **k),
    "adamw": lambda p, **k: torch.optim.AdamW(p, lr=0.01, **k),
    "adagrad": lambda p, **k: torch.optim.Adagrad(p, lr=0.01, lr_decay=0.1, **k),
    "rmsprop": lambda p, **k: torch.optim.RMSprop(p, lr=0.01, **k),
}


def kernels():
    torch.halyard.synchronize()
    return torch.halyard.statistics()["kernels"]


@pytest.mark.parametrize("way", ["foreach", "fused"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_kernels_of_a_step(name, way, strict):
    if name == "rmsprop" and way == "fused":
        pytest.skip("PyTorch has no fused RMSprop")
    shapes = [(i % 7 * 3 + 3,) if i % 3 else (i % 5 + 2, i % 4 + 3) for i in range(100)]
    parameters = [torch.nn.Parameter(torch.randn(shape).to(DEVICE)) for shape in shapes]
    gradients = [torch.randn(shape).to(DEVICE) for shape in shapes]
    optimizer = OPTIMIZERS[name](parameters, **{way: True})
    for _ in range(3):
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient.clone()
        before = kernels()
        optimizer.step()
        after = kernels()
    assert after - before <= 3


def test_kernels_of_clipping(strict):
    """The norms of all gradients, the total norm, and all gradients times the same factor."""
    shapes = [(i % 7 * 3 + 3,) if i % 3 else (i % 5 + 2, i % 4 + 3) for i in range(100)]
    gradients = [torch.randn(shape) for shape in shapes]
    parameters = [torch.nn.Parameter(torch.zeros(shape).to(DEVICE)) for shape in shapes]
    for _ in range(3):
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient.to(DEVICE)
        before = kernels()
        norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        after = kernels()
    assert after - before <= 4
    want = torch.cat([g.flatten() for g in gradients]).norm()
    torch.testing.assert_close(norm.cpu(), want, rtol=1e-5, atol=0)
    torch.testing.assert_close(parameters[7].grad.cpu(), gradients[7] / (want + 1e-6), rtol=1e-5, atol=1e-7)

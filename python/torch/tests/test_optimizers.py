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


def lists(dtype):
    """Three lists of equal shapes, some of them dense in another order, and the same on the device."""
    generator = torch.Generator().manual_seed(3)
    shapes = [(i % 7 * 3 + 3,) if i % 3 else (i % 5 + 2, i % 4 + 3) for i in range(20)]
    values = [[torch.rand(shape, generator=generator).to(dtype) + 1 for shape in shapes] for _ in range(3)]
    ours = [[t.to(DEVICE) for t in some] for some in values]
    for some in (*values, *ours):
        some[3] = some[3].t()
    return values, ours


FOREACH = {
    "number": lambda a, b, c: torch._foreach_add_(a, 2),
    "numbers": lambda a, b, c: torch._foreach_div_(a, [i + 1.5 for i in range(len(a))]),
    "list": lambda a, b, c: torch._foreach_mul_(a, b),
    "alpha": lambda a, b, c: torch._foreach_sub_(a, b, alpha=0.5),
    "itself": lambda a, b, c: torch._foreach_add_(a, a, alpha=2),
    "tensor": lambda a, b, c: torch._foreach_mul_(a, b[0][0, 0].clone()),
    "maximum": lambda a, b, c: torch._foreach_maximum_(a, b),
    "addcmul": lambda a, b, c: torch._foreach_addcmul_(a, b, c, 0.25),
    "addcdiv": lambda a, b, c: torch._foreach_addcdiv_(a, b, c, [0.5 * i for i in range(len(a))]),
    "lerp": lambda a, b, c: torch._foreach_lerp_(a, b, 0.1),
    "far lerp": lambda a, b, c: torch._foreach_lerp_(a, b, 0.9),
    "sqrt": lambda a, b, c: torch._foreach_sqrt_(a),
    "neg": lambda a, b, c: torch._foreach_neg_(a),
    "reciprocal": lambda a, b, c: torch._foreach_reciprocal_(a),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", FOREACH)
def test_foreach(name, dtype, strict):
    (a, b, c), (x, y, z) = lists(dtype)
    FOREACH[name](a, b, c)
    FOREACH[name](x, y, z)
    for got, want in zip(x, a):
        assert got.stride() == want.stride()
        torch.testing.assert_close(got.cpu(), want)


def test_foreach_of_parts(strict):
    """Views, other shapes that broadcast, a type of its own, and a tensor that is listed twice."""
    base = torch.arange(24.0).reshape(4, 6)
    ours = base.to(DEVICE)
    for x in (base, ours):
        torch._foreach_mul_([x[:2], x[2:]], [x[0].clone(), x[3].clone()])
        torch._foreach_add_([x, x], 1)
        torch._foreach_add_([x[0], x[1].to(torch.float64)], [x[2], x[3].to(torch.float64)])
    torch.testing.assert_close(ours.cpu(), base)
    sums = torch._foreach_add([ours, ours.int()], 1)
    assert [t.dtype for t in sums] == [torch.float32, torch.int32]
    assert sums[0].cpu().equal(base + 1) and sums[1].cpu().equal(base.int() + 1)
    with pytest.raises(RuntimeError):
        torch._foreach_add_([ours, ours], [ours])


def test_foreach_is_one_call():
    """What torch.optim calls does not go through PyTorch's dispatcher for each tensor."""
    forms = ["add_.Scalar", "add.List", "mul_.Scalar", "mul_.Tensor", "sub_.ScalarList", "div_.ScalarList",
             "div_.Tensor", "lerp_.Scalar", "addcmul_.Scalar", "addcdiv_.ScalarList", "maximum_.List",
             "sqrt", "neg", "reciprocal_"]
    for form in forms:
        assert torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::_foreach_{form}", "PrivateUse1"), form

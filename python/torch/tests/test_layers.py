"""Layers that are one call with one gradient: linear and attention, against PyTorch's processor."""
import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

DEVICE = "halyard"


def both(function, tensors, places=(DEVICE, "cpu")):
    """Result, gradients and gradients of a sum of their squares, on the device and on the processor."""
    answers = []
    for place in places:
        operands = [None if t is None else t.to(place).requires_grad_() for t in tensors]
        given = [t for t in operands if t is not None]
        y = function(*operands)
        slopes = torch.linspace(-1, 1, y.numel()).reshape(y.shape).to(y)
        first = torch.autograd.grad(y, given, slopes, create_graph=True)
        second = torch.autograd.grad(sum(g.square().sum() for g in first), given, allow_unused=True)
        answers.append([t if t is None else t.detach().cpu() for t in (y, *first, *second)])
    return answers


def assert_same(ours, theirs, tolerance=1e-5):
    for a, b in zip(ours, theirs):
        if a is None or b is None:
            assert all(t is None or not t.any() for t in (a, b))
        else:
            assert a.shape == b.shape
            torch.testing.assert_close(a, b, atol=tolerance, rtol=tolerance)


# ---- linear ----

SHAPES = [((5, 3), (4, 3), (4,)), ((2, 5, 3), (4, 3), (4,)), ((2, 5, 3), (4, 3), None), ((3,), (4, 3), (4,)),
          ((5, 3), (3,), None), ((5, 3), (4, 3), (5, 4)), ((5, 3), (4, 3), (1,)), ((5, 3), (4, 3), ()),
          ((0, 3), (4, 3), (4,)), ((5, 0), (4, 0), (4,))]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_linear(shapes, strict):
    torch.manual_seed(0)
    tensors = [None if s is None else torch.randn(s) for s in shapes]
    assert_same(*both(F.linear, tensors))


def test_linear_of_views(strict):
    torch.manual_seed(0)
    x, w = torch.randn(3, 6, 5), torch.randn(6, 4)
    assert_same(*both(lambda x, w: F.linear(x.transpose(1, 2)[:, 1:], w.t()), [x, w]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16, torch.int64])
def test_linear_of_other_types(dtype):
    x, w = torch.arange(6).view(2, 3).to(dtype), torch.arange(12).view(4, 3).to(dtype)
    torch.testing.assert_close(F.linear(x.to(DEVICE), w.to(DEVICE)).cpu(), F.linear(x, w))


def test_linear_of_complex_numbers_has_a_gradient():
    x, w, b = (torch.complex(torch.linspace(-1, 1, n), torch.linspace(2, -1, n)) for n in (6, 12, 4))
    answers = []
    for place in (DEVICE, "cpu"):
        operands = [t.to(place).requires_grad_() for t in (x.view(2, 3), w.view(4, 3), b)]
        y = F.linear(*operands)
        answers.append([y, *torch.autograd.grad(y, operands, y.detach())])
    for ours, theirs in zip(*answers):
        torch.testing.assert_close(ours.cpu(), theirs)


def test_linear_by_vmap(strict):
    x, w = torch.randn(5, 3), torch.randn(4, 3)

    def loss(w, x):
        return F.linear(x, w).square().sum()
    for function in (F.linear, torch.func.grad(loss)):
        ours, theirs = (torch.func.vmap(lambda w, x: function(w, x) if function is not F.linear else
                                        function(x, w), (None, 0))(w.to(p), x.to(p)).cpu()
                        for p in (DEVICE, "cpu"))
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("change", [dict(x=(5, 4)), dict(grad=(5, 3)), dict(grad=(4, 4)), dict(weight=(3,)),
                                    dict(grad=(20,))], ids=str)
def test_wrong_gradients_of_linear(change):
    shapes = {"x": (5, 3), "grad": (5, 4), "weight": (4, 3)} | change
    tensors = [torch.zeros(shapes[name], device=DEVICE) for name in ("x", "grad", "weight")]
    with pytest.raises(RuntimeError, match="linear_backward: expected"):
        torch.ops.aten.linear_backward(*tensors, [True, True, True])


# ---- Attention ----

def masks(rows, columns):
    some = torch.rand(2, 3, rows, columns) > 0.4
    some[0, 1, 2] = False  # a row without any key
    return {"none": None, "of all": some, "of heads": some[:, :1], "of rows": some[0, 0],
            "of batches": some[:, :1, :1], "nothing": torch.zeros(1, 1, 1, columns, dtype=torch.bool),
            "numbers": torch.randn(rows, columns)}


def attention_and_gradients(place, dtype, columns, mask, **options):
    torch.manual_seed(1)
    q, k, v = torch.randn(2, 8, 3, 4), torch.randn(2, columns, 3, 4), torch.randn(2, columns, 3, 6)
    tensors = [t.to(place, dtype).requires_grad_() for t in (q, k, v)]
    mask = mask if mask is None or mask.dtype == torch.bool else mask.to(dtype)
    y = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in tensors), **options,
                                       attn_mask=None if mask is None else mask.to(place))
    (y * torch.linspace(-1, 1, y.numel()).reshape(y.shape).to(y)).sum().backward()
    return [y.detach().cpu(), *(t.grad.cpu() for t in tensors)]


@pytest.mark.parametrize("name", masks(8, 5))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_attention(name, dtype, strict):
    torch.manual_seed(0)
    mask = masks(8, 5)[name]
    ours, theirs = (attention_and_gradients(p, dtype, 5, mask) for p in (DEVICE, "cpu"))
    assert_same(ours, theirs, 4e-2 if dtype == torch.bfloat16 else 1e-5)


@pytest.mark.parametrize("options", [{"is_causal": True}, {"scale": 0.3}, {"scale": 0.0}, {"scale": -2.0}], ids=str)
def test_attention_with_options(options, strict):
    ours, theirs = (attention_and_gradients(p, torch.float32, 8, None, **options) for p in (DEVICE, "cpu"))
    assert_same(ours, theirs)


def test_attention_keeps_the_order_of_axes(strict):
    x = torch.randn(2, 8, 3, 4, device=DEVICE, requires_grad=True)
    q = x.transpose(1, 2)
    y = F.scaled_dot_product_attention(q, q, q)
    assert y.transpose(1, 2).is_contiguous()
    slope, = torch.autograd.grad(y.sum(), q)
    assert slope.transpose(1, 2).is_contiguous()


def test_gradients_of_gradients_of_attention(strict):
    x = torch.randn(1, 2, 5, 4)
    with sdpa_kernel(SDPBackend.MATH):
        assert_same(*both(lambda x: F.scaled_dot_product_attention(x, x, x), [x]), 1e-4)


def test_attention_by_vmap(strict):
    x = torch.randn(7, 2, 3, 5, 4)
    ours, theirs = (torch.func.vmap(F.scaled_dot_product_attention)(*[x.to(p)] * 3).cpu() for p in (DEVICE, "cpu"))
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("shapes", [((1, 2, 5, 4), (1, 2, 5, 3), (1, 2, 5, 4)),
                                    ((1, 2, 5, 4), (1, 2, 5, 4), (1, 2, 6, 4))], ids=str)
def test_attention_of_wrong_shapes(shapes):
    with pytest.raises(RuntimeError):
        F.scaled_dot_product_attention(*(torch.zeros(s, device=DEVICE) for s in shapes)).cpu()


# ---- Normalisations ----

def batch_norm(x, w, b):
    means, variances = torch.zeros_like(w, requires_grad=False), torch.ones_like(w, requires_grad=False)
    return F.batch_norm(x, means, variances, w, b, True)


NORMS = {"batch": batch_norm, "evaluated batch": lambda x, w, b: F.batch_norm(x, w.detach(), w.detach(), w, b),
         "instance": lambda x, w, b: F.instance_norm(x, weight=w, bias=b),
         "group": lambda x, w, b: F.group_norm(x, 2, w, b), "layer": lambda x, w, b: F.layer_norm(x, (6,), w, b)}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", NORMS)
def test_norms_of_narrow_floats_with_wider_weights(name, dtype, strict):
    """Results and gradients have their operand's type."""
    torch.manual_seed(0)
    x, w, b = torch.randn(4, 6, 5, 6).to(dtype), torch.rand(6) + 0.5, torch.randn(6)
    slopes = torch.randn(x.shape).to(dtype)
    answers = []
    for place in (DEVICE, "cpu"):
        operands = [t.to(place).requires_grad_() for t in (x, w, b)]
        y = NORMS[name](*operands)
        gradients = torch.autograd.grad(y, operands, slopes.to(place))
        answers.append([t.detach().cpu() for t in (y, *gradients)])
    for ours, theirs in zip(*answers):
        assert ours.dtype == theirs.dtype
        tolerance = 4 * torch.finfo(dtype).eps
        torch.testing.assert_close(ours.double(), theirs.double(), atol=tolerance * theirs.abs().max(), rtol=tolerance)


# ---- losses of classes ----

@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_ignored_classes_have_no_gradient(reduction):
    """All of a batch, and 255 of uint8, which has no -1."""
    for target, ignored in ((torch.tensor([-100, -100]), -100),
                            (torch.tensor([255, 4], dtype=torch.uint8), 255)):
        answers = []
        for place in (DEVICE, "cpu"):
            x = torch.linspace(-1, 1, 42).view(2, 21).to(place).requires_grad_()
            y = F.cross_entropy(x, target.to(place), ignore_index=ignored, reduction=reduction)
            answers.append(torch.autograd.grad(y.nan_to_num().sum(), x)[0].cpu())
        assert answers[0].isfinite().all()
        torch.testing.assert_close(*answers)


def test_wrong_weights_of_classes_are_refused():
    x, target = torch.zeros(4, 5, device=DEVICE), torch.tensor([0, 4, 1, 2], device=DEVICE)
    for count in (1, 3, 9):
        with pytest.raises(RuntimeError, match="weight tensor"):
            F.nll_loss(x, target, weight=torch.ones(count, device=DEVICE))
    with pytest.raises(RuntimeError, match="size mismatch"):
        torch.ops.aten.nll_loss2d(torch.zeros(2, 5, 3, 2, device=DEVICE),
                                  torch.zeros(2, 2, 3, dtype=torch.long, device=DEVICE), None, 1, -100)

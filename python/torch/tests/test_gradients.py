"""Gradient operators that are called with wrong operands raise where PyTorch's processor does."""
import re

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = "halyard"

X = torch.linspace(-2, 2, 24).reshape(2, 3, 4)
Y = X.flip(0) * 0.7
IMAGE = torch.linspace(-2, 2, 2 * 4 * 6 * 6).reshape(2, 4, 6, 6)
SPACE = torch.linspace(-2, 2, 2 * 2 * 4 * 4 * 4).reshape(2, 2, 4, 4, 4)
LINE = torch.linspace(-2, 2, 2 * 3 * 8).reshape(2, 3, 8)
W = torch.linspace(-1, 1, 3 * 4 * 3 * 3).reshape(3, 4, 3, 3)
ROW4, ROW3 = torch.linspace(0.5, 1, 4), torch.linspace(0.5, 1, 3)
ITEMS = torch.tensor([1, 0, 2, 1])
CLASSES = torch.tensor([1, 2])

# Functions of the tensors that they are called with; their gradients are the calls under test.
FORWARD = [
    *((f, X) for f in (torch.tanh, torch.sigmoid, F.gelu, F.silu, F.mish, F.softplus, F.leaky_relu, F.elu,
                       F.hardtanh, F.hardsigmoid, F.hardswish, F.hardshrink, F.softshrink, F.logsigmoid,
                       F.relu, F.celu, F.selu, F.relu6)),
    (lambda x: F.gelu(x, approximate="tanh"), X),
    (lambda x: torch.logit(x, 0.1), X.sigmoid()),
    (lambda x: F.threshold(x, 0.1, 2), X),
    (lambda x: F.glu(x, 2), X),
    (F.prelu, X, ROW3),
    (lambda x: F.softmax(x, 1), X),
    (lambda x: F.log_softmax(x, 1), X),
    *((lambda x, f=f, r=r: f(x, Y.to(x.device), reduction=r), X) for r in ("none", "mean")
      for f in (F.mse_loss, F.smooth_l1_loss, F.huber_loss, F.soft_margin_loss)),
    *((lambda x, r=r: F.binary_cross_entropy(x, Y.sigmoid().to(x.device), reduction=r), X.sigmoid())
      for r in ("none", "mean")),
    *((lambda x, r=r: F.nll_loss(x, CLASSES.to(x.device), reduction=r), X[:, :, 0]) for r in ("none", "mean")),
    *((lambda x, r=r: F.nll_loss(x, CLASSES.to(x.device).view(2, 1, 1).expand(2, 6, 6).contiguous(), reduction=r),
       IMAGE) for r in ("none", "mean")),
    (lambda w: F.embedding(ITEMS.to(w.device), w), X[0]),
    (lambda x, w, b: F.layer_norm(x, [4], w, b), X, ROW4, ROW4),
    (lambda x, w, b: F.group_norm(x, 2, w, b), IMAGE, ROW4, ROW4),
    (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), IMAGE, ROW4, ROW4),
    (lambda x, w, b: F.batch_norm(x, ROW4.to(x.device), ROW4.to(x.device), w, b), IMAGE, ROW4, ROW4),
    (lambda x, w, b: torch.ops.aten._batch_norm_with_update(x, w, b, ROW4.to(x.device), ROW4.to(x.device), 0.1, 1e-5)[0],
     IMAGE, ROW4, ROW4),
    (lambda x, w: F.conv2d(x, w), IMAGE, W),
    (lambda x, w, b: F.conv2d(x, w, b, 2, 1), IMAGE, W, ROW3),
    (lambda x: F.max_pool2d(x, 2), IMAGE),
    (lambda x: F.avg_pool2d(x, 2), IMAGE),
    (lambda x: F.max_pool3d(x, 2), SPACE),
    (lambda x: F.avg_pool3d(x, 2), SPACE),
    (lambda x: F.adaptive_max_pool2d(x, 4), IMAGE),
    (lambda x: F.adaptive_max_pool3d(x, 2), SPACE),
    (lambda x: F.adaptive_avg_pool2d(x, 4), IMAGE),
    (lambda x: F.adaptive_avg_pool3d(x, 2), SPACE),
    *((lambda x, m=m, n=n: F.pad(x, (1, 2) * n, mode=m), t) for m in ("reflect", "replicate")
      for n, t in ((1, LINE), (2, IMAGE), (3, SPACE))),
    *((lambda x, m=m: F.interpolate(x, scale_factor=2, mode=m), t) for m, t in (
        ("nearest", LINE), ("nearest", IMAGE), ("nearest", SPACE), ("nearest-exact", LINE),
        ("nearest-exact", IMAGE), ("nearest-exact", SPACE), ("linear", LINE), ("bilinear", IMAGE),
        ("trilinear", SPACE), ("bicubic", IMAGE))),
    (lambda x: F.interpolate(x, (3, 3), mode="bilinear", antialias=True), IMAGE),
    (lambda x: torch.nn.functional.grid_sample(x, torch.zeros(2, 3, 3, 2, device=x.device),
                                               align_corners=False), IMAGE),
    (lambda x: x.unfold(2, 2, 1), X),
    (lambda x: x[0:1], X), (lambda x: x.select(1, 1), X), (lambda x: x.diagonal(), X),
    (lambda x: torch.nn.functional.fractional_max_pool2d(x, 2, output_size=3), IMAGE),
    (lambda x: x.cumprod(1), X), (lambda x: torch.cdist(x, Y.to(x.device)), X), (torch.pdist, X[0]),
    (lambda x: F.scaled_dot_product_attention(x, x, x), IMAGE),
    (lambda x: F.multi_margin_loss(x, CLASSES.to(x.device)), X[:, :, 0]),
    (lambda x, w: F.linear(x, w), X, X[0]),
    (lambda v, g: torch._weight_norm(v, g, 0), W, ROW3.view(3, 1, 1, 1)),
]


# Those that the programs above do not call themselves.
DIRECT = {
    "aten::_thnn_fused_lstm_cell_backward_impl": ([*(torch.ones(2, 3) for _ in range(4)), torch.ones(2, 12), True], {}),
    "aten::_thnn_fused_gru_cell_backward": ([torch.ones(2, 3), torch.ones(2, 15), True], {}),
    "aten::native_dropout_backward": ([X, X > 0, 2.0], {}),
    "aten::convolution_backward_overrideable": (
        [torch.ones(2, 3, 4, 4), IMAGE, W, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [True] * 3], {}),
    "aten::_scaled_dot_product_fused_attention_overrideable_backward": (
        [torch.ones(2, 4, 6, 6), IMAGE, IMAGE, IMAGE, None, [True, True, True, False], None, None, None, None, 6, 6,
         0.0, False, None, None], {}),
}

# Their kernels broadcast, here as on PyTorch's processor.
BROADCAST = {f"aten::{name}_backward" for name in (
    "tanh", "sigmoid", "gelu", "silu", "mish", "softplus", "leaky_relu", "elu", "hardtanh", "hardsigmoid",
    "hardswish", "hardshrink", "softshrink", "log_sigmoid", "logit", "threshold", "mse_loss", "smooth_l1_loss",
    "huber_loss", "binary_cross_entropy", "_prelu_kernel", "native_dropout")}

# Operands of other shapes that are right as well: lengths of an adaptive pooling, elements beyond the last window
# of a pooling or between the places of maxima, the width of rows, the number of classes, results of the forward
# pass that are not read or differ from the processor's.
FREE = re.compile(
    r"_adaptive_avg_pool.d_backward... operand .: axis [234]|adaptive_max_pool.d_backward... operand 1: axis [234]|"
    r"(max|avg)_pool.d(_with_indices)?_backward... operand 1: axis [234] .1|"
    r"embedding_dense_backward... operand 0: axis 1|nll_loss(2d)?_backward... operand 1: axis 1|"
    r"log_sigmoid_backward|native_batch_norm_backward.1. operand [56]|batch_norm_backward.0. operand ([34]|10)|"
    r"_fused_attention_overrideable_backward... operand (6|7|8|9|14|15):")


class Calls(TorchDispatchMode):
    """The gradient operators that are called, with their operands on the processor."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if "backward" in function.name():
            self.calls.append((function, moved([args, kwargs or {}], "cpu")))
        return function(*args, **(kwargs or {}))


def moved(tree, place):
    return tree_map(lambda t: t.detach().to(place) if isinstance(t, torch.Tensor) else
                    torch.device(place) if isinstance(t, torch.device) else t, tree)


def right_calls():
    """Operands of each gradient operator, some with several lists of them."""
    calls = {name: [call] for name, call in DIRECT.items()}
    for function, *tensors in FORWARD:
        with Calls() as mode:
            operands = [t.clone().to(DEVICE).requires_grad_() for t in tensors]
            y = function(*operands)
            torch.autograd.grad(y, operands, torch.ones_like(y))
        for operator, operands in mode.calls:
            calls.setdefault(operator.name(), []).append(operands)
    return calls


def overload(name):
    base, _, which = name.removeprefix("aten::").partition(".")
    return getattr(getattr(torch.ops.aten, base), which or "default")


def other_shapes(t):
    for axis in range(t.dim()):
        for more in (1, -1) if t.shape[axis] else (1,):
            shape = list(t.shape)
            shape[axis] += more
            yield f"axis {axis} {more:+}", shape
    yield "an axis more", [2, *t.shape]
    if t.dim():
        yield "an axis less", list(t.shape[1:])


def wrong_calls(operands):
    """Calls with one tensor of another shape, or with indices that are no integers."""
    for i, t in enumerate(operands):
        if isinstance(t, torch.Tensor):
            for what, shape in other_shapes(t):
                yield f"operand {i}: {what}", [*operands[:i], torch.ones(shape, dtype=t.dtype), *operands[i + 1:]]
            if t.dtype == torch.int64:
                yield f"operand {i}: floats", [*operands[:i], t.float(), *operands[i + 1:]]


def answer(operator, operands, keywords, place):
    """Results on the processor, or the message of an error."""
    try:
        result = moved(operator(*moved(operands, place), **moved(keywords, place)), "cpu")
        if place != "cpu":
            torch.halyard.synchronize()
        return result
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def is_right(name, operands, keywords):
    """Whether a wrong call raises, or computes what the processor does where it may."""
    ours = answer(overload(name), operands, keywords, DEVICE)
    if isinstance(ours, str) or name not in BROADCAST:
        return isinstance(ours, str) and len(ours) > 20
    with torch.backends.mkldnn.flags(enabled=False):  # its gelu does not broadcast
        theirs = answer(overload(name), operands, keywords, "cpu")
    pairs = list(zip(tree_leaves(ours), tree_leaves(theirs)))
    return not isinstance(theirs, str) and all(
        a.shape == b.shape and torch.allclose(a, b, 1e-4, 1e-5, equal_nan=True) for a, b in pairs)


def registered():
    names = torch._C._dispatch_get_registrations_for_dispatch_key("PrivateUse1")
    return {n for n in names if "backward" in n and not n.endswith((".grad_input", ".out"))
            and "fallback" not in n}


def test_wrong_operands_of_gradients():
    calls = right_calls()
    assert not registered() - calls.keys()
    wrong = []
    for name in sorted(registered()):
        for number, (operands, keywords) in enumerate(calls[name][:2]):
            assert not isinstance(answer(overload(name), operands, keywords, DEVICE), str), name
            called = [(f"{name}({number}) {what}", other) for what, other in wrong_calls(operands)]
            wrong += [what for what, other in called
                      if not is_right(name, other, keywords) and not FREE.search(what)]
    assert not wrong, "\n".join(wrong)


aten = torch.ops.aten
LOGITS, PIXELS = torch.linspace(-2, 2, 12).reshape(3, 4), torch.linspace(-2, 2, 24).reshape(2, 3, 2, 2)


def classes_gradient(x, target):
    return aten.nll_loss_backward(x.new_ones(()), x, target, None, 1, -100, x.new_full((), 3))


def pixels_gradient(x, target):
    return aten.nll_loss2d_backward(x.new_ones(()), x, target, None, 1, -100, x.new_full((), 8))


# What PyTorch's processor refuses, with its exception.
@pytest.mark.parametrize("function, operands, error", [
    (F.nll_loss, (LOGITS, torch.tensor([0, 4, 1])), IndexError),
    (F.nll_loss, (LOGITS, torch.tensor([0, -1, 1])), IndexError),
    (F.nll_loss, (LOGITS, torch.tensor([0., 1, 2])), RuntimeError),
    (F.nll_loss, (PIXELS, torch.full((2, 2, 2), 3)), IndexError),
    (F.nll_loss, (PIXELS, torch.zeros(2, 2, 2)), RuntimeError),
    (classes_gradient, (LOGITS, torch.tensor([0, 4, 1])), IndexError),
    (classes_gradient, (LOGITS, torch.tensor([0, -1, 1])), IndexError),
    (classes_gradient, (LOGITS, torch.tensor([0, 1])), RuntimeError),
    (pixels_gradient, (PIXELS, torch.full((2, 2, 2), 3)), IndexError),
    (F.embedding, (torch.tensor([0, 3]), LOGITS), IndexError),
    (F.embedding, (torch.tensor([0., 1]), LOGITS), RuntimeError),
    (lambda x: F.adaptive_max_pool2d(x, 2), (torch.ones(2, 0, 3),), RuntimeError),
    (lambda x: F.adaptive_max_pool3d(x, 2), (torch.ones(2, 3, 0, 3, 3),), RuntimeError),
    (lambda x: F.adaptive_avg_pool2d(x, 2), (torch.ones(2, 0, 3),), RuntimeError)])
def test_wrong_values_raise_as_on_the_processor(function, operands, error):
    for device in ("cpu", DEVICE):
        with pytest.raises(error) as raised:
            function(*(t.to(device) for t in operands)).cpu()
        assert len(str(raised.value)) > 20


@pytest.mark.parametrize("place", [-1, 16])
def test_places_outside_of_an_adaptive_pooling_raise(place):
    """PyTorch's processor writes beyond its memory."""
    g, x, places = torch.ones(3, 2, 2), torch.ones(3, 4, 4), torch.full((3, 2, 2), place)
    with pytest.raises(IndexError):
        aten.adaptive_max_pool2d_backward(g.to(DEVICE), x.to(DEVICE), places.to(DEVICE)).cpu()


def test_ignored_classes_are_no_index():
    x, target = LOGITS.to(DEVICE), torch.tensor([0, -100, 1])
    assert classes_gradient(x, target.to(DEVICE)).cpu().equal(classes_gradient(LOGITS, target))

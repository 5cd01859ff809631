"""Single operators that agreed with PyTorch's processor in some cases only."""
import math

import pytest
import torch
import torch_halyard  # noqa: F401

DEVICE = "halyard"


def floats(*shape, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3), dtype=dtype)


MATRIX_FUNCTIONS = {
    "det": torch.linalg.det,
    "slogdet": lambda a: torch.linalg.slogdet(a)[1],
    "solve": lambda a: torch.linalg.solve(a, torch.eye(4, 3, device=a.device, dtype=a.dtype)),
    "solve right": lambda a: torch.linalg.solve(a, torch.eye(4, device=a.device, dtype=a.dtype)[:3], left=False),
    "inv": torch.linalg.inv,
}


@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize("name", MATRIX_FUNCTIONS)
def test_gradients_of_matrices(name, layout, strict):
    """Gradients read the factors of the forward call, which depend on the matrix' layout."""
    results = []
    for device in ("cpu", DEVICE):
        a = floats(2, 4, 4, dtype=torch.float64).to(device)
        a = (a if layout == "rows" else a.mT.contiguous().mT).requires_grad_()
        y = MATRIX_FUNCTIONS[name](a)
        (y * y).sum().backward()
        results.append((y.detach().cpu(), a.grad.cpu()))
    torch.testing.assert_close(results[1], results[0])


@pytest.mark.parametrize("kind", ["addmv", "baddbmm", "addmm"])
def test_factors_of_integers(kind, strict):
    """A factor of integers counts by its whole part."""
    shapes = {"addmv": [(2,), (2, 3), (3,)], "baddbmm": [(2, 2, 4), (2, 2, 3), (2, 3, 4)],
              "addmm": [(2, 4), (2, 3), (3, 4)]}[kind]
    operands = [(floats(*shape) * 9).long() for shape in shapes]
    results = [getattr(torch, kind)(*[t.to(device) for t in operands], beta=1.7, alpha=2.6).cpu()
               for device in ("cpu", DEVICE)]
    assert results[1].equal(results[0])


@pytest.mark.parametrize("factors", [(1, 1), (0.5, 2), (0, 1.5)])
def test_addr(factors, strict):
    beta, alpha = factors
    for dtype, tolerance in ((torch.float32, 1e-6), (torch.float16, 2e-3), (torch.bfloat16, 2e-2)):
        x, a, b = floats(4, 3).to(dtype), floats(4).to(dtype), floats(3).to(dtype)
        exact = torch.addr(x.float(), a.float(), b.float(), beta=beta, alpha=alpha)
        ours = torch.addr(x.to(DEVICE), a.to(DEVICE), b.to(DEVICE), beta=beta, alpha=alpha)
        torch.testing.assert_close(ours.cpu().float(), exact, rtol=tolerance, atol=tolerance)


def test_parts_of_complex_numbers_are_views(strict):
    z = floats(3, 4, dtype=torch.complex64).to(DEVICE)
    other = z.cpu()
    for t in (z, other):
        t.real.mul_(2)
        t[1].imag.zero_()
    assert z.cpu().equal(other)
    assert torch.view_as_complex(torch.view_as_real(z)).cpu().equal(other)
    a = floats(3, 2).to(DEVICE)
    torch.view_as_complex(a).real.fill_(7)
    assert a[:, 0].cpu().eq(7).all()


def test_conjugate_in_place():
    z = floats(3, dtype=torch.complex64)
    assert z.to(DEVICE).conj_physical_().cpu().equal(z.conj().resolve_conj())


def test_mode_with_out(strict):
    x = torch.tensor([[1, 2, 2], [3, 3, 1]])
    out = (torch.empty(0, dtype=torch.long, device=DEVICE), torch.empty(0, dtype=torch.long, device=DEVICE))
    torch.mode(x.to(DEVICE), 1, out=out)
    assert out[0].tolist() == [2, 3]


@pytest.mark.parametrize("row", [[1, 1, "nan"], ["inf", "inf", 2], [3, 1, "nan", 3, "nan", "nan"], ["-inf", "nan", "-inf"]])
def test_mode_next_to_nan(row, strict):
    """No NaN is equal to another one. The results of PyTorch's processor depend on the order."""
    value, place = torch.mode(torch.tensor([float(v) for v in row], device=DEVICE))
    assert value.item() == float(row[0]) == float(row[place.item()])


@pytest.mark.parametrize("order", [1, 2, float("inf"), 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
def test_norms_of_many(order, dtype, strict):
    tensors = [floats(i % 5 + 1, i * 37 + 1).to(dtype) for i in range(12)]
    ours = [t.to(DEVICE) for t in tensors]
    ours[3] = ours[3].t()
    ours[4] = ours[4][:, 1:]
    tensors[4] = tensors[4][:, 1:]
    for got, want in zip(torch._foreach_norm(ours, order), torch._foreach_norm(tensors, order)):
        assert got.dtype == want.dtype and got.shape == want.shape
        torch.testing.assert_close(got.cpu(), want, rtol=2e-3 if dtype == torch.float16 else 1e-5, atol=0)


@pytest.mark.parametrize("axis", [0, 1])
def test_parts_are_joined_again(axis, strict):
    x = floats(6, 4)
    ours = x.to(DEVICE)
    parts = ours.split(2, axis)
    whole, rest = torch.cat(parts, axis), torch.cat(parts[1:], axis)
    ours.add_(1)  # neither is a view
    assert whole.cpu().equal(x) and rest.cpu().equal(torch.cat(x.split(2, axis)[1:], axis))
    assert torch.stack(list(ours[0])).cpu().equal(x[0] + 1)
    assert torch.cat([parts[1], parts[0]], axis).cpu().equal(
        torch.cat([t + 1 for t in (x.split(2, axis)[1], x.split(2, axis)[0])], axis))


@pytest.mark.parametrize("eps", [None, 0.1])
def test_gradient_of_logit(eps, strict):
    """A zero has its sign; outside of the function's domain there is no gradient."""
    x = torch.tensor([-0.0, 0.0, 0.3, 0.95, 1.2, -3.0])
    ours = torch.ops.aten.logit_backward(torch.ones(6, device=DEVICE), x.to(DEVICE), eps).cpu()
    inf, nan = float("inf"), float("nan")
    edges = [-inf, inf, nan, nan] if eps is None else [0.0] * 4
    want = [*edges[:2], 1 / 0.21, 1 / 0.0475 if eps is None else 0.0, *edges[2:]]
    torch.testing.assert_close(ours, torch.tensor(want), equal_nan=True)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 2)])
def test_saturation_to_float16(shape, strict):
    x = (floats(12) * 1e5)[:1 if not shape else 12 if len(shape) > 1 else 3].reshape(shape)
    ours = torch.ops.aten._saturate_weight_to_fp16(x.to(DEVICE))
    assert ours.cpu().equal(x.clamp(-65504, 65504))


@pytest.mark.parametrize("is_periodic", [True, False])
@pytest.mark.parametrize("length", [0, 1, 2, 9])
def test_kaiser_window(length, is_periodic):
    for beta in (0.0, 5.0, -3.0):
        ours = torch.kaiser_window(length, is_periodic, beta, dtype=torch.float64, device=DEVICE).cpu()
        want = torch.kaiser_window(length, is_periodic, beta, dtype=torch.float64)
        torch.testing.assert_close(ours, want, atol=1e-12, rtol=1e-12)
    large, infinite = (torch.kaiser_window(9, False, beta, device=DEVICE).cpu() for beta in (100.0, float("inf")))
    assert large.isfinite().all() and large[4] == 1 and infinite.tolist() == [0] * 4 + [1] + [0] * 4


def test_gradient_of_vander(strict):
    x = torch.tensor([0.5, 0.75, 1.25], device=DEVICE, requires_grad=True)
    torch.vander(x).sum().backward()
    assert x.grad.tolist() == [2, 2.5, 3.5]


def test_generators_of_operators_that_fall_back():
    """The processor draws from a generator with a seed of the device's."""
    def draws(seed):
        generator = torch.Generator(DEVICE).manual_seed(seed)
        return torch.cat([torch.empty(3, device=DEVICE).cauchy_(generator=generator).cpu() for _ in range(2)])
    first = draws(3)
    assert first.equal(draws(3)) and not first.equal(draws(4)) and not first[:3].equal(first[3:])
    order = torch.randperm(5, generator=torch.Generator(DEVICE), device=DEVICE, dtype=torch.float32)
    assert order.sort()[0].tolist() == [0, 1, 2, 3, 4]


def test_places_of_nan_in_mode(strict):
    values, places = torch.mode(torch.tensor([[float("nan"), 1, float("nan")], [1, 1, 2]], device=DEVICE), 1)
    assert values[0].isnan().item() and places[0].item() in (0, 2) and places[1].item() == 1


def test_targets_of_norms_and_stacks(strict):
    x = floats(2, 3)
    ours = x.to(DEVICE)
    for name, arguments in (("norm", (2, [1], False)), ("frobenius_norm", ([1], False))):
        out = torch.empty(2, device=DEVICE)
        getattr(torch.ops.aten, name).out(ours, *arguments, out=out)
        torch.testing.assert_close(out.cpu(), x.norm(dim=1))
    out = torch.empty(2, 2, 3, device=DEVICE)
    torch.ops.aten._stack.out([ours, ours], 0, out=out)
    assert out.cpu().equal(torch.stack([x, x]))


@pytest.mark.parametrize("dtype", [torch.bool, torch.int32])
def test_numbers_in_place_of_nan_keep_the_type(dtype, strict):
    x = torch.tensor([1, 0, 1], dtype=dtype, device=DEVICE)
    assert torch.nan_to_num(x, 0.5).dtype == dtype and x.clone().nan_to_num_(0.5, 1.0, -1.0).tolist() == x.tolist()


def test_bessel_functions_at_infinity(strict):
    """PyTorch's processor has NaN there."""
    x = torch.tensor([float("-inf"), float("inf"), 100.0, 1.0], device=DEVICE)
    inf = float("inf")
    assert torch.special.i0(x).tolist()[:3] == [inf, inf, inf] and torch.special.i1(x).tolist()[:3] == [-inf, inf, inf]
    assert torch.special.i0(x)[3].item() == pytest.approx(1.2660659)


def test_infinities_are_no_nan(strict):
    """Formulas that made a zero of x by x * 0 gave NaN for an infinite x."""
    inf = float("inf")
    x = torch.tensor([1, inf, 3, -inf])
    ours = x.to(DEVICE)
    assert torch.median(ours).item() == 1 and torch.median(torch.cat([ours, ours[:1] * float("nan")])).isnan().item()
    assert torch.angle(ours).cpu().equal(torch.angle(x))
    assert torch.frexp(ours)[0].cpu().equal(torch.frexp(x)[0]) and torch.frexp(ours)[1].tolist()[1::2] == [0, 0]


F = torch.nn.functional
MAXIMA = {
    "1 axis": ((2, 9), lambda x: F.max_pool1d(x, 3, 2, 1, 2, return_indices=True)),
    "2 axes": ((2, 2, 5, 6), lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True, return_indices=True)),
    "2 axes, long windows": ((2, 9, 8), lambda x: F.max_pool2d(x, 9, 3, 4, return_indices=True)),
    "3 axes": ((1, 2, 4, 5, 4), lambda x: F.max_pool3d(x, 3, 2, 1, return_indices=True)),
    "lengths, 1 axis": ((2, 3, 7), lambda x: F.adaptive_max_pool1d(x, 3, return_indices=True)),
    "lengths, 2 axes": ((2, 3, 7, 6), lambda x: F.adaptive_max_pool2d(x, (3, 2), return_indices=True)),
    "lengths, 3 axes": ((1, 2, 5, 4, 6), lambda x: F.adaptive_max_pool3d(x, 3, return_indices=True)),
}


@pytest.mark.parametrize("values", ["-inf", "nan", "both"])
@pytest.mark.parametrize("name", MAXIMA)
def test_places_of_maxima(name, values, strict):
    """A window of -inf has its first element as the maximum, never one of the padding; one with several NaN the last."""
    shape, pool = MAXIMA[name]
    x = torch.full(shape, float("nan" if values == "nan" else "-inf"))
    if values == "both":
        x[floats(*shape) > 0.5] = float("nan")
        x[floats(*shape) < -1] = 1
    results = []
    for device in ("cpu", DEVICE):
        t = x.clone().to(device).requires_grad_()
        y, places = pool(t)
        y.sum().backward()
        results.append([r.detach().cpu() for r in (y, places, t.grad)])
    for got, want in zip(*reversed(results)):
        torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)


aten = torch.ops.aten
# Of a tensor x [1, 1, 8, 8]. They were divisions by zero, reads beyond a list, lists without an end, or accepted.
WRONG_NUMBERS = {
    "max_pool2d": [lambda x: torch.nn.functional.max_pool2d(x, 2, stride=0),
                   lambda x: aten.max_pool2d_with_indices(x, [], [1, 1]),
                   lambda x: aten.max_pool2d_with_indices(x, [2, 2, 2], [1, 1]),
                   lambda x: aten.max_pool2d_with_indices(x, [2, 2], [1, 1], [0, 0], [0, 1])],
    "avg_pool2d": [lambda x: torch.nn.functional.avg_pool2d(x, 2, stride=(1, 0)),
                   lambda x: aten.avg_pool2d(x, []), lambda x: aten.avg_pool2d(x, [0, 2], [1, 1]),
                   lambda x: aten.avg_pool2d(x, [2, 2], [1, 1], [2, 2]),
                   lambda x: aten.avg_pool2d(x, 2, divisor_override=0)],
    "gradients of pools": [
        lambda x: aten.avg_pool2d_backward(x, x, [2, 2], [0, 0], [0, 0], False, True, None),
        lambda x: aten.avg_pool2d_backward(x, x.view(-1), [2, 2], [2, 2], [0, 0], False, True, None),
        lambda x: aten.max_pool2d_with_indices_backward(x, x, [], [], [], [], False, x.long()),
        lambda x: aten.adaptive_max_pool2d_backward(x, x.view(-1), x.long())],
    "pools of 3 axes": [lambda x: aten.avg_pool3d(x, [1, 2, 2], [0, 0, 0]), lambda x: aten.avg_pool3d(x, [2, 2]),
                        lambda x: aten.max_pool3d_with_indices(x.view(-1), [1, 1, 1]),
                        lambda x: aten.max_pool3d_with_indices(x, [1, 2, 2], [1, 1]),
                        lambda x: aten.max_pool3d_with_indices(x, 8, 2, 0, 1, True)],
    "transposed convolution": [lambda x: torch.nn.functional.conv_transpose2d(x, x, output_padding=2)],
    "axes": [lambda x: aten._softmax(x, 2**40, False), lambda x: aten._log_softmax(x, 2**40, False),
             lambda x: aten._softmax_backward_data(x, x, 2**40, x.dtype), lambda x: torch.flip(x, [0, 0]),
             lambda x: aten.glu(x, 2**40), lambda x: torch.roll(x[:0], [1, 1], [0]),
             lambda x: torch.count_nonzero(x[0, 0, 0, 0], 7), lambda x: torch.logcumsumexp(x[0, 0, 0, 0], 7)],
    "orders": [lambda x: torch.polygamma(-1, x)],
    "indices": [lambda x: x.index_add(0, torch.tensor([[0]], device=x.device), x),
                lambda x: x.index_add(2, torch.tensor([0, 1], device=x.device), x[..., :2, :4]),
                lambda x: x.index_copy(2, torch.tensor([0, 1], device=x.device), x[..., :2, :4]),
                lambda x: x.index_reduce(2, torch.tensor([0], device=x.device), x[..., :1, :4], "mean"),
                lambda x: x.index_fill(0, torch.tensor([[0]], device=x.device), 1),
                lambda x: aten.index_select(x, 0, torch.tensor([[0]], device=x.device))],
    "columns": [lambda x: torch.nn.functional.unfold(x, 2, stride=0), lambda x: torch.nn.functional.unfold(x, 0),
                lambda x: torch.nn.functional.unfold(x, 2, dilation=0),
                *[lambda x, n=n: aten.im2col(x, n, [1, 1], [0, 0], [1, 1]) for n in ([], [-1, 2])]],
    "adaptive means": [lambda x, n=n: aten._adaptive_avg_pool2d(x, n) for n in ([], [2], [-1, 2], [2, 2, 2])],
    "adaptive maxima": [*[lambda x, n=n: aten.adaptive_max_pool2d(x, n) for n in ([], [2], [-1, 2])],
                        *[lambda x, shape=shape: aten.adaptive_max_pool2d(x.view(shape), [2, 2])
                          for shape in ((64,), (8, 8), (1, 1, 1, 8, 8))]],
    "unpooling": [*[lambda x, n=n: aten.max_unpool2d(x, x.long(), n) for n in ([], [8], [-1, 2])],
                  lambda x: aten.max_unpool2d(x.view(-1), x.view(-1).long(), [8, 8]),
                  lambda x: aten.max_unpool3d(x, x.long(), [1, 8, 8], [0, 1, 1], [0, 0, 0])],
    "interpolation": [lambda x, n=n: aten.upsample_bilinear2d(x, n, False) for n in ([], [8], [0, 8], [8, 8, 8])],
    "nearest neighbours": [lambda x, f=f, n=n: f(x, n) for n in ([], [8], [-1, 8])
                           for f in (aten.upsample_nearest2d, aten._upsample_nearest_exact2d)],
    "gradients of interpolation": [
        lambda x, n=n: aten.upsample_bilinear2d_backward(x, [8, 8], n, False) for n in ([], [1, 1], [1, 1, 0, 4])],
    "padding": [lambda x: aten.reflection_pad2d(x, []), lambda x: aten.replication_pad2d(x, [1, 1]),
                lambda x: aten.replication_pad2d_backward(x, x, [1, 1])],
    "normalisation": [
        lambda x: aten.native_group_norm(x, None, None, 1, 1, 64, 0, 1e-5),
        lambda x: aten.native_layer_norm_backward(x, x, [0], x, x, None, None, [True, True, True])],
}


@pytest.mark.parametrize("name", WRONG_NUMBERS)
def test_wrong_numbers_are_errors(name):
    for call in WRONG_NUMBERS[name]:
        for device in ("cpu", DEVICE):
            with pytest.raises((RuntimeError, IndexError)):
                call(torch.ones(1, 1, 8, 8, device=device))


@pytest.mark.parametrize("keeps", [False, True])
def test_truth_along_no_axes_is_that_of_elements(keeps, strict):
    for x in (floats(2, 3).round(), torch.tensor([0, 1, 3], dtype=torch.uint8), torch.zeros(0, 2)):
        for function in (torch.any, torch.all):
            ours, want = (function(t, dim=[], keepdim=keeps) for t in (x.to(DEVICE), x))
            assert ours.dtype == want.dtype and ours.cpu().equal(want)


@pytest.mark.parametrize("place", [-1, 16])
def test_places_of_unpooling_are_within_the_result(place):
    x = torch.ones(1, 1, 2, 2, device=DEVICE)
    with pytest.raises(IndexError):
        aten.max_unpool2d(x, torch.full((1, 1, 2, 2), place, device=DEVICE), [4, 4]).cpu()
    assert aten.max_unpool2d(x, torch.full((1, 1, 2, 2), 15, device=DEVICE), [4, 4])[0, 0, 3, 3].item() == 1


@pytest.mark.parametrize("type", [torch.int32, torch.int64, torch.uint8])
def test_histogram_of_integers(type, strict):
    """PyTorch's processor refuses it; models that choose experts ask for it on other devices."""
    x = torch.tensor([[0, 3, 3, 7, 1], [9, 2, 7, 7, 4]], dtype=type)
    for bins, low, high in ((10, 0, 9), (4, 0, 9), (3, 2, 7), (5, 0, 0)):
        ours = torch.histc(x.to(DEVICE), bins, low, high)
        assert ours.dtype == type
        assert ours.cpu().tolist() == torch.histc(x.double(), bins, low, high).tolist()


@pytest.mark.parametrize("mode", ["floor", "trunc"])
def test_division_of_integers_by_a_number(mode, strict):
    x = torch.arange(-9, 10)
    for divisor in (3, -4, 1):
        ours = torch.div(x.to(DEVICE), divisor, rounding_mode=mode)
        assert ours.cpu().equal(torch.div(x, divisor, rounding_mode=mode))
    with pytest.raises(RuntimeError):
        torch.div(x, 0, rounding_mode=mode)


@pytest.mark.parametrize("dim", [0, 2, -1])
def test_weight_norm(dim, strict):
    v, g = torch.linspace(-1, 2, 24).view(2, 3, 4), torch.linspace(0.5, 1, 24).view(2, 3, 4)
    shape = [1, 1, 1]
    shape[dim] = v.size(dim)
    answers = []
    for place in (DEVICE, "cpu"):
        scale = g.amax([i for i in range(3) if i != dim % 3]).view(shape)
        operands = [t.to(place).requires_grad_() for t in (v, scale)]
        w = torch._weight_norm(*operands, dim)
        answers.append([w, *torch.autograd.grad((w * w * w).sum(), operands)])
    for ours, theirs in zip(*answers):
        torch.testing.assert_close(ours.cpu(), theirs)


def test_results_that_reductions_may_overwrite():
    x = torch.arange(6.0).view(3, 2).to(DEVICE)
    assert torch.sum(x, 0, out=x[0]).tolist() == [6, 9] and x.tolist()[0] == [6, 9]


@pytest.mark.parametrize("dtype, divisor", [(torch.int8, 300), (torch.int8, -200), (torch.uint8, -3), (torch.uint8, 300),
                                            (torch.int16, 70000), (torch.int64, 2**53 + 1), (torch.int64, 2**62)])
@pytest.mark.parametrize("rounding", ["floor", "trunc"])
def test_divisors_that_a_type_lacks(dtype, divisor, rounding):
    """PyTorch's processor knows what becomes of them."""
    x = torch.tensor([100, 7, 0, 93], dtype=dtype)
    answers = []
    for device in ("cpu", DEVICE):
        try:
            answers.append(torch.div(x.to(device), divisor, rounding_mode=rounding).tolist())
        except RuntimeError:
            answers.append("refused")
    assert answers[1] == answers[0]


SHARED = {  # of x [6]: results that share memory with an operand
    "add_": lambda x: x[1:].add_(x[:-1]), "mul_ of a transpose": lambda x: x[:4].view(2, 2).mul_(x[:4].view(2, 2).t()),
    "lerp_": lambda x: x[1:].lerp_(x[:-1], 0.5), "exp out": lambda x: torch.exp(x[:-1], out=x[1:]),
    "where out": lambda x: torch.where(x[:-1] > 1, x[:-1], x[1:], out=x[1:]),
    "cumsum out": lambda x: torch.cumsum(x[:-1], 0, out=x[1:]), "copy_": lambda x: x[1:].copy_(x[:-1]),
    "assignment": lambda x: x.__setitem__(slice(1, None), x[:-1]),
    "lists": lambda x: torch._foreach_add_([x[1:]], [x[:-1]]),
    "scatter_": lambda x: x[1:].scatter_(0, torch.arange(2, device=x.device), x[:-1]),
    "cross": lambda x: torch.linalg.cross(x[:3], x[3:], out=x[:3]), "cat": lambda x: torch.cat([x[:2]], out=x[:2]),
    "expanded": lambda x: x[:1].expand(3).add_(1), "expanded copy": lambda x: x[:1].expand(3).copy_(x[3:]),
    "whole": lambda x: x.add_(x), "apart": lambda x: x[:3].add_(x[3:]), "exp of itself": lambda x: torch.exp(x, out=x),
    "sum": lambda x: torch.sum(x, 0, out=x[0]), "mv": lambda x: x[:2].addmv_(x[:4].view(2, 2), x[1:3]),
    "as it is": lambda x: x.copy_(x),
    "number under a mask": lambda x: x.__setitem__(x > 1, x[0]), "number at a value": lambda x: x.__setitem__(x == 3, x[-2]),
    "number for NaN": lambda x: x.__setitem__(torch.isnan(x), x[0]),
    "number under a mask of columns": lambda x: x.view(2, 3).__setitem__((slice(None), x[:3] > 0), x[1]),
    "number at indices": lambda x: x.__setitem__([0, 1], x[0]), "values under a mask": lambda x: x.__setitem__(x > -1, x),
    "added number": lambda x: x.index_put_((x > 1,), x[0], True),
    "masked_fill_": lambda x: x.masked_fill_(x > 1, x[1]), "fill_": lambda x: x.fill_(x[2]),
    "masked_fill_ by its part": lambda x: (lambda m: m.masked_fill_(m[0], False))(x > 2),
    "masked_fill_ by itself": lambda x: (lambda m: x.copy_(m.masked_fill_(m, m[0])))(x > 2),
    "fill_ of a row": lambda x: x[:4].view(2, 2)[0].fill_(x[1]), "constant_": lambda x: torch.nn.init.constant_(x, x[3]),
    "index_fill_": lambda x: x.index_fill_(0, places(x), x[1]), "scatter_ of itself": lambda x: x.scatter_(0, places(x), x),
    "scatter_add_ of itself": lambda x: x.scatter_add_(0, places(x), x),
    "scatter_reduce_ of itself": lambda x: x.scatter_reduce_(0, places(x), x, "prod"),
    "scatter out": lambda x: torch.scatter(x[:3], 0, places(x[:3]), x[3:], out=x[:3]),
    "scatter out of its source": lambda x: torch.scatter(x[:3], 0, places(x[:3]), x[3:], out=x[3:]),
    "index_add_ of itself": lambda x: x.index_add_(0, places(x), x), "put_ of itself": lambda x: x.put_(places(x), x),
    "index_add out": lambda x: torch.index_add(x[:3], 0, places(x[:3]), x[3:], out=x[:3]),
    "index_copy_ of itself": lambda x: x.index_copy_(0, places(x), x),
    "index_reduce_ of itself": lambda x: x.index_reduce_(0, places(x), x, "prod"),
    "index_put_ of itself": lambda x: x.index_put_((places(x),), x),
    "max out": lambda x: torch.max(x[:4].view(2, 2), 0, out=(x[1:3], places(x[:2]))),
    "min out": lambda x: torch.min(x[:4].view(2, 2), 0, out=(x[1:3], places(x[:2]))),
    "aminmax out": lambda x: torch.aminmax(x[:4].view(2, 2), dim=0, out=(x[1:3], x[4:])),
    "addmv out": lambda x: torch.addmv(x[:2], x[2:].view(2, 2), x[4:], out=x[1:3]),
    "addmv out of its matrix": lambda x: torch.addmv(x[:2], x[2:].view(2, 2), x[4:], out=x[:2]),
    "addmm out": lambda x: torch.addmm(x[:4].view(2, 2), x[2:].view(2, 2), x[2:].view(2, 2), out=x[1:5].view(2, 2)),
    "solve_triangular out": lambda x: torch.linalg.solve_triangular(
        x[1:5].view(2, 2), x[:4].view(2, 2), upper=True, out=x[2:].view(2, 2)),
    "ldexp out": lambda x: torch.ldexp(x[:3], x[3:], out=x[1:4]), "ldexp_": lambda x: x[1:4].ldexp_(x[3:])}


def places(x):
    return torch.arange(x.numel(), device=x.device)


@pytest.mark.parametrize("name", SHARED)
def test_results_that_share_memory(name, strict):
    """Refused, or accepted, as by PyTorch's processor; what is refused is left as it is."""
    answers = []
    for device in ("cpu", DEVICE):
        x, message = torch.arange(6.0).to(device), ""
        try:
            SHARED[name](x)
        except RuntimeError as error:
            message = str(error)
        assert not message or "single memory location" in message
        answers.append((message.partition("Please")[0], x.cpu()))
    assert answers[0][0] == answers[1][0]
    torch.testing.assert_close(answers[1][1], answers[0][1])


def indices_like(out):
    return torch.zeros(out.shape, dtype=torch.long, device=out.device)


OVERWRITTEN = {  # of x [6, 6] and a result: what PyTorch lets overwrite its operands
    "relu": lambda x, out: aten.relu.out(x[:2], out=out(2, 6)),
    "threshold": lambda x, out: aten.threshold.out(x[:2], 0.5, 0.1, out=out(2, 6)),
    "threshold_backward": lambda x, out: aten.threshold_backward.grad_input(x[:2], x[2:4], 0.5, grad_input=out(2, 6)),
    "glu": lambda x, out: aten.glu.out(x[:2], 1, out=out(2, 3)),
    "log_sigmoid": lambda x, out: aten.log_sigmoid_forward.output(x[:2], output=out(2, 6), buffer=x.new_empty(0)),
    "nll_loss": lambda x, out: aten.nll_loss_forward.output(
        x, indices_like(x[0]), None, 0, -100, output=out(6), total_weight=x.new_zeros(())),
    "nll_loss_backward": lambda x, out: aten.nll_loss_backward.grad_input(
        x[0, :5], x[:5], indices_like(x[0, :5]), None, 0, -100, x.new_ones(()), grad_input=out(5, 6)),
    "histc": lambda x, out: torch.histc(x, 3, out=out(3)),
    "median": lambda x, out: torch.median(x, 0, out=(out(6), indices_like(x[0]))),
    "nanmedian": lambda x, out: torch.nanmedian(x, 0, out=(out(6), indices_like(x[0]))),
    "cummax": lambda x, out: torch.cummax(x[:2], 0, out=(out(2, 6), indices_like(x[:2]))),
    "addbmm": lambda x, out: torch.addbmm(x[5, :4].view(2, 2), x[0, :4].view(1, 2, 2), x[1, :4].view(1, 2, 2),
                                          out=out(2, 2)),
    "avg_pool2d": lambda x, out: aten.avg_pool2d.out(x[None], [2, 2], out=out(1, 3, 3)),
    "avg_pool3d": lambda x, out: aten.avg_pool3d.out(x[None, None], [1, 2, 2], out=out(1, 1, 3, 3)),
    "max_pool2d": lambda x, out: aten.max_pool2d_with_indices.out(
        x[None], [2, 2], out=out(1, 3, 3), indices=indices_like(x[None, :3, :3])),
    "adaptive_max_pool2d": lambda x, out: aten.adaptive_max_pool2d.out(
        x[None], [3, 3], out=out(1, 3, 3), indices=indices_like(x[None, :3, :3])),
    "max_unpool2d": lambda x, out: aten.max_unpool2d.out(
        x[None, :2, :2], places(x[0, :4]).view(1, 2, 2), [2, 2], out=out(1, 2, 2)),
    "upsample_nearest1d": lambda x, out: aten.upsample_nearest1d.out(x[None, :2], [12], out=out(1, 2, 12)),
    "upsample_nearest2d": lambda x, out: aten.upsample_nearest2d.out(x[None, None, :2], [4, 6], out=out(1, 1, 4, 6)),
    "upsample_bilinear2d": lambda x, out: aten.upsample_bilinear2d.out(
        x[None, None, :2], [4, 6], False, out=out(1, 1, 4, 6)),
    "reflection_pad1d": lambda x, out: aten.reflection_pad1d.out(x[:2], [1, 1], out=out(2, 8)),
    "replication_pad1d": lambda x, out: aten.replication_pad1d.out(x[:2], [1, 1], out=out(2, 8)),
    "im2col": lambda x, out: aten.im2col.out(x[None, None, :4], [2, 2], [1, 1], [0, 0], [2, 2], out=out(1, 4, 6))}


@pytest.mark.parametrize("name", OVERWRITTEN)
def test_results_that_overwrite_operands(name, strict):
    """Where PyTorch does not look: as if the result were elsewhere."""
    def run(device, out_of):
        x = torch.linspace(-1, 2, 36).view(6, 6).to(device)
        outs = []

        def out(*shape):
            outs.append(out_of(x).flatten()[1:1 + math.prod(shape)].view(shape))
            return outs[0]
        OVERWRITTEN[name](x, out)
        return outs[0].cpu()
    run("cpu", lambda x: x)  # PyTorch accepts it
    torch.testing.assert_close(run(DEVICE, lambda x: x), run("cpu", torch.zeros_like))


def test_results_that_grow_into_an_operand():
    x = torch.arange(6.0).to(DEVICE)
    out = x[2:2]
    torch.add(x[:4], 1, out=out)
    assert out.tolist() == [1, 2, 3, 4] and x.tolist() == [0, 1, 1, 2, 3, 4]


@pytest.mark.parametrize("row", [[1, math.nan], [math.inf, math.nan], [math.nan, 1], [math.nan, math.nan], [2, math.nan, 1],
                                 [math.nan, 1, 1], [1, 1, math.nan, math.nan], [5, math.nan, 4, math.nan, 3], [2, 2, 1, 1]])
def test_mode_with_nan(row, strict):
    ours, want = (torch.mode(torch.tensor(row, device=device)) for device in (DEVICE, "cpu"))
    torch.testing.assert_close(ours.values.cpu(), want.values, equal_nan=True)
    assert ours.indices.item() == want.indices.item()


def test_refused_results_are_left_as_they_are():
    x, values = torch.tensor([3.0, 7.0]).to(DEVICE), torch.zeros(0, device=DEVICE)
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.max(x, 0, out=(values, torch.zeros(1, dtype=torch.long, device=DEVICE).expand(3)))
    assert values.shape == (0,)

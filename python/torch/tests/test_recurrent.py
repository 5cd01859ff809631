"""Recurrent networks: values and gradients of PyTorch's processor, and few kernels."""
import itertools

import pytest
import torch
import torch.nn.functional as F
import torch_halyard  # noqa: F401
from torch import nn

DEVICE = "halyard"
CELLS = {"lstm": nn.LSTMCell, "gru": nn.GRUCell, "tanh": nn.RNNCell,
         "relu": lambda *a, **k: nn.RNNCell(*a, nonlinearity="relu", **k)}
KINDS = {"lstm": nn.LSTM, "gru": nn.GRU, "tanh": nn.RNN,
         "relu": lambda *a, **k: nn.RNN(*a, nonlinearity="relu", **k)}


def values_and_gradients(model, x, states, place, weigh=True):
    """Results of all kinds, and the gradients of a loss of all results for inputs and parameters."""
    model = model.to(place)
    model.zero_grad()
    x = x.detach().to(place).requires_grad_()
    states = [s.detach().to(place).requires_grad_() for s in states]
    hx = None if not states else tuple(states) if len(states) > 1 else states[0]
    found = model(x, hx)
    if isinstance(model, nn.RNNCellBase):
        found = (found[0], found) if isinstance(found, tuple) else (found, found)
    y, last = found
    results = [y, *(last if isinstance(last, tuple) else (last,))]
    loss = sum((r * torch.linspace(-1, 1, r.numel(), dtype=r.dtype).view(r.shape).to(place)).sum()
               for r in (results if weigh else results[:1]))
    loss.backward()
    gradients = [x.grad, *(s.grad for s in states), *(p.grad for p in model.parameters())]
    return [r.detach().cpu() for r in results], [None if g is None else g.to("cpu", copy=True) for g in gradients]


def assert_same(model, x, states, weigh=True, tolerance=2e-5):
    theirs = values_and_gradients(model, x, states, "cpu", weigh)
    ours = values_and_gradients(model, x, states, DEVICE, weigh)
    for a, b in zip(itertools.chain(*ours), itertools.chain(*theirs)):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, atol=tolerance, rtol=tolerance)


def inputs(kind, width, layers=1, directions=1, dtype=torch.float32):
    generator = torch.Generator().manual_seed(5)
    count = 2 if kind == "lstm" else 1
    x = torch.randn(5, 3, 4, generator=generator, dtype=dtype)
    return x, [torch.randn(layers * directions, 3, width, generator=generator, dtype=dtype)
               for _ in range(count)]


# 150 hidden values are more than one kernel computes, see ops_recurrent_is_faster.
@pytest.mark.parametrize("width", [6, 150])
@pytest.mark.parametrize("kind", KINDS)
def test_layer(kind, width, strict):
    torch.manual_seed(2)
    x, states = inputs(kind, width)
    assert_same(KINDS[kind](4, width), x, states)


@pytest.mark.parametrize("options", [{"num_layers": 2, "bidirectional": True}, {"bias": False},
                                     {"batch_first": True}], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_options(kind, options, strict):
    torch.manual_seed(3)
    directions = 2 if "bidirectional" in options else 1
    x, states = inputs(kind, 6, options.get("num_layers", 1), directions)
    x = x.transpose(0, 1).contiguous() if "batch_first" in options else x
    assert_same(KINDS[kind](4, 6, **options), x, states)
    assert_same(KINDS[kind](4, 6, **options), x, [], weigh=False)


@pytest.mark.parametrize("kind", KINDS)
def test_double_precision(kind, strict):
    x, states = inputs(kind, 6, dtype=torch.float64)
    assert_same(KINDS[kind](4, 6).double(), x, states, tolerance=1e-11)


def narrow_error(kind, dtype, place, autocast=False):
    """The largest errors of values and gradients in parts of the largest ones, against float32."""
    x, states = inputs(kind, 150)
    torch.manual_seed(2)
    expected = values_and_gradients(KINDS[kind](4, 150), x, states, "cpu")
    torch.manual_seed(2)
    model = KINDS[kind](4, 150)
    if not autocast:
        model, x, states = model.to(dtype), x.to(dtype), [s.to(dtype) for s in states]
    with torch.autocast(place, dtype=dtype, enabled=autocast):
        found = values_and_gradients(model, x, states, place)
    assert {y.dtype for y in found[0]} == {dtype}
    return max(((a.float() - b).abs().max() / b.abs().max()).item()
               for a, b in zip(itertools.chain(*found), itertools.chain(*expected)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_narrow_floats(kind, dtype, strict):
    usual = narrow_error(kind, dtype, "cpu")
    assert narrow_error(kind, dtype, DEVICE) <= 2 * usual
    assert narrow_error(kind, dtype, DEVICE, autocast=True) <= 2 * usual


def test_what_other_code_computes(strict):
    """Projections, packed sequences, and sequences without a batch."""
    torch.manual_seed(4)
    x, _ = inputs("lstm", 6)
    assert_same(nn.LSTM(4, 6, proj_size=2), x, [])
    assert_same(nn.LSTM(4, 6), x[:, 0], [])
    model = nn.LSTM(4, 6)
    packed = nn.utils.rnn.pack_padded_sequence(x, [5, 3, 2])
    theirs = model(packed)[0].data
    model.to(DEVICE)
    ours = model(nn.utils.rnn.pack_padded_sequence(x.to(DEVICE), [5, 3, 2]))[0].data
    torch.testing.assert_close(ours.cpu(), theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_gradients(kind, strict):
    torch.manual_seed(6)
    x, states = inputs(kind, 6)
    model = KINDS[kind](4, 6)
    found = []
    for place in ("cpu", DEVICE):
        model.to(place)
        a = x.detach().to(place).requires_grad_()
        y, _ = model(a)
        slope, = torch.autograd.grad(y.square().sum(), a, create_graph=True)
        found.append(torch.autograd.grad(slope.square().sum(), [a, *model.parameters()]))
    for a, b in zip(*found):
        torch.testing.assert_close(b.cpu(), a, atol=1e-4, rtol=1e-4)


def test_modes(strict):
    """Without gradients, under inference mode, and with weights that change before backward."""
    x, _ = inputs("lstm", 6)
    model = nn.LSTM(4, 6)
    expected = model(x)[0].detach()
    model.to(DEVICE)
    x = x.to(DEVICE)
    with torch.no_grad():
        y = model(x)[0]
    assert not y.requires_grad
    torch.testing.assert_close(y.cpu(), expected)
    with torch.inference_mode():
        torch.testing.assert_close(model(x)[0].cpu(), expected)
    y = model(x)[0].sum()
    with torch.no_grad():
        model.weight_hh_l0.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    y = model(x)[0].sum()
    y.backward(retain_graph=True)
    first = model.weight_hh_l0.grad.cpu()
    y.backward()
    torch.testing.assert_close(model.weight_hh_l0.grad.cpu(), 2 * first)
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_function_transforms(strict):
    x, _ = inputs("lstm", 6)
    model = nn.LSTM(4, 6).to(DEVICE)
    x = x.to(DEVICE)
    slope = torch.func.grad(lambda a: model(a)[0].sum())(x)
    a = x.clone().requires_grad_()
    model(a)[0].sum().backward()
    torch.testing.assert_close(slope.cpu(), a.grad.cpu())


def test_wrong_shapes():
    model = nn.LSTM(4, 6).to(DEVICE)
    with pytest.raises(RuntimeError):
        torch._VF.lstm(torch.zeros(5, 3, 4).to(DEVICE), (torch.zeros(1, 3, 5).to(DEVICE),) * 2,
                       [*model.parameters()], True, 1, 0.0, False, False, False)


def kernels_of_step(make, optimizer="foreach", autocast=False):
    torch.manual_seed(1)
    cell, out = make(32, 64).to(DEVICE), nn.Linear(64, 10).to(DEVICE)
    x, labels = torch.rand(16, 16, 32).to(DEVICE), (torch.arange(16) % 10).to(DEVICE)
    parameters = [*cell.parameters(), *out.parameters()]
    steps = torch.optim.Adam(parameters, lr=1e-4, **{optimizer: True})

    def count():
        torch.halyard.synchronize()
        return torch.halyard.statistics()["kernels"]
    for _ in range(12):  # kernels of single operations come first where compiling takes long
        before = count()
        steps.zero_grad()
        with torch.autocast(DEVICE, dtype=torch.bfloat16, enabled=autocast):
            loss = F.cross_entropy(out(cell(x)[0][-1]), labels)
        loss.backward()
        steps.step()
        after = count()
    return after - before


@pytest.mark.parametrize("kind, most", [("lstm", 30), ("gru", 30)])
def test_kernels_of_a_training_step(kind, most, strict):
    assert kernels_of_step(KINDS[kind]) <= most


def test_kernels_under_autocast(strict):
    """A product and a cell a step forward and back, and no product of weights' gradients a step."""
    assert kernels_of_step(KINDS["lstm"], autocast=True) <= 100


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", CELLS)
def test_cells(kind, bias, dtype, strict):
    torch.manual_seed(7)
    x, states = inputs(kind, 6, dtype=dtype)
    cell = CELLS[kind](4, 6, bias=bias).to(dtype)
    assert_same(cell, x[0], [s[0] for s in states], tolerance=2e-5 if dtype == torch.float32 else 1e-11)
    assert_same(cell, x[0], [], weigh=False)
    assert_same(cell, x[0, 0], [], weigh=False)


@pytest.mark.parametrize("kind", CELLS)
def test_cells_over_time(kind, strict):
    """Gradients through the states of several steps, and gradients of gradients."""
    torch.manual_seed(8)
    x, _ = inputs(kind, 6)
    cell = CELLS[kind](4, 6)
    found = []
    for place in ("cpu", DEVICE):
        cell.to(place)
        a = x.detach().to(place).requires_grad_()
        state = None
        for values in a:
            state = cell(values, state)
        h = state[0] if kind == "lstm" else state
        slope, = torch.autograd.grad(h.square().sum(), a, create_graph=True)
        found.append([slope.detach(), *torch.autograd.grad(slope.square().sum(), [a, *cell.parameters()])])
    for a, b in zip(*found):
        torch.testing.assert_close(b.cpu(), a, atol=1e-4, rtol=1e-4)


def test_wrong_shapes_of_cells():
    cell = nn.LSTMCell(4, 6).to(DEVICE)
    parameters = [*cell.parameters()]
    with pytest.raises(RuntimeError):
        torch._VF.lstm_cell(torch.zeros(3, 5).to(DEVICE), (torch.zeros(3, 6).to(DEVICE),) * 2, *parameters)
    with pytest.raises(RuntimeError):
        torch._VF.lstm_cell(torch.zeros(3, 4).to(DEVICE), (torch.zeros(3, 6).to(DEVICE),), *parameters)


# Forward: the products of inputs and state, and the cell. Backward: the sums' gradients, a product for each
# weight, and the sums of the biases in one. Gradients of operands: a product each for x and h, a view of c's.
@pytest.mark.parametrize("of_operands, most", [(False, 7), (True, 10)])
@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_kernels_of_a_cell(kind, of_operands, most, strict):
    cell = CELLS[kind](32, 64).to(DEVICE)
    count = 2 if kind == "lstm" else 1
    x, *states = [torch.randn(16, n).to(DEVICE).requires_grad_(of_operands) for n in (32, *[64] * count)]
    slope = torch.randn(16, 64).to(DEVICE)
    for _ in range(12):
        for tensor in (x, *states, *cell.parameters()):
            tensor.grad = None
        torch.halyard.synchronize()
        before = torch.halyard.statistics()["kernels"]
        y = cell(x, tuple(states) if kind == "lstm" else states[0])
        (y[0] if kind == "lstm" else y).backward(slope)
        torch.halyard.synchronize()
        after = torch.halyard.statistics()["kernels"]
    assert after - before <= most

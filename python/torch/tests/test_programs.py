"""Training programs give the losses of PyTorch's processor, and none of their operators falls back."""
import pytest
import torch
import torch.nn.functional as F
from programs import OPTIMIZERS, PROGRAMS, mlp, train

DEVICE = "halyard"


def assert_same_losses(program, optimizer, **options):
    ours = train(program, optimizer, DEVICE, **options)
    theirs = train(program, optimizer, "cpu", **options)
    assert ours == pytest.approx(theirs, abs=1e-3)


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program, strict):
    assert_same_losses(program, "adam")


@pytest.mark.parametrize("options", [{"foreach": False}, {"foreach": True}, {"fused": True}],
                         ids=["single", "foreach", "fused"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizer(optimizer, options, strict):
    if optimizer == "rmsprop" and "fused" in options:
        pytest.skip("PyTorch has no fused RMSprop")
    assert_same_losses("mlp", optimizer, **options)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_mixed_precision(dtype, strict):
    torch.manual_seed(1)
    model = mlp(10, 16, 5)
    x, labels = torch.randn(8, 10), torch.arange(8) % 5
    expected = F.cross_entropy(model(x), labels).item()
    model.to(DEVICE)
    scaler = torch.amp.GradScaler(DEVICE, init_scale=128.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with torch.autocast(DEVICE, dtype=dtype):
        y = model(x.to(DEVICE))
        loss = F.cross_entropy(y, labels.to(DEVICE))
    assert y.dtype == dtype and loss.dtype == torch.float32
    assert loss.item() == pytest.approx(expected, abs=0.05)
    before = model[0].weight.detach().cpu()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert not model[0].weight.detach().cpu().equal(before)
    assert torch.isfinite(model[0].weight.detach().cpu()).all()


def test_gradients_with_an_infinity_are_skipped(strict):
    model = torch.nn.Linear(3, 2).to(DEVICE)
    scaler = torch.amp.GradScaler(DEVICE, init_scale=4.0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = model.weight.detach().cpu()
    scaler.scale(model(torch.full((1, 3), float("inf"), device=DEVICE)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert model.weight.detach().cpu().equal(before) and scaler.get_scale() == 2.0


def test_dropout_keeps_the_mean(strict):
    torch.manual_seed(1)
    x = torch.ones(100, 100, device=DEVICE, requires_grad=True)
    y = F.dropout(x, 0.25)
    y.sum().backward()
    assert y.mean().item() == pytest.approx(1, abs=0.03)
    assert (y == 0).float().mean().item() == pytest.approx(0.25, abs=0.03)
    assert x.grad.cpu().equal(y.detach().cpu())


def test_vmap_and_double_backward(strict):
    x = torch.tensor([1.0, 2.0], device=DEVICE, requires_grad=True)
    slope, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
    slope.sum().backward()
    assert x.grad.tolist() == [6, 12]
    rows = torch.arange(6.0, device=DEVICE).view(2, 3)
    assert torch.func.vmap(lambda row: torch.tanh(row * 0).sum())(rows).tolist() == [0, 0]


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.3}, {"masked": True}], ids=str)
def test_attention_of_long_sequences(options, strict):
    options = dict(options)
    generator = torch.Generator().manual_seed(3)
    theirs = [torch.randn(1, 2, 512, 8, generator=generator).requires_grad_() for _ in range(3)]
    ours = [t.detach().to(DEVICE).requires_grad_() for t in theirs]
    mask = torch.rand(512, 512, generator=generator) > 0.3 if options.pop("masked", False) else None
    results = []
    for tensors, place in ((ours, DEVICE), (theirs, "cpu")):
        m = None if mask is None else mask.to(place)
        y = F.scaled_dot_product_attention(*tensors, attn_mask=m, **options)
        y.square().sum().backward()
        results.append([y.detach().cpu(), *(t.grad.cpu() for t in tensors)])
    for a, b in zip(*results):
        assert torch.allclose(a, b, atol=1e-4)

"""The device as a whole: copies, views, storages, streams, events, random numbers, errors, threads."""
import copy
import io
import itertools
import os
import subprocess
import sys
import threading
import weakref

import pytest
import torch

DEVICE = "halyard"
TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32,
         torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64]


def values(*shape, dtype=torch.float32):
    generator = torch.Generator().manual_seed(1)
    return (torch.randn(*shape, generator=generator) * 3).to(dtype)


def test_programs_ask_whether_cuda_captures():
    """Libraries ask it on every machine. Without a CUDA device that raises, as it does with CUDA's own libraries."""
    code = "import torch\ntry: print(torch.cuda.is_current_stream_capturing())\nexcept RuntimeError: print(False)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "False\n"), ran.stderr


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_copies(dtype):
    x = values(3, 4, dtype=dtype)
    h = x.to(DEVICE)
    assert h.device.type == DEVICE and h.cpu().equal(x)
    assert h.t()[1:3].cpu().equal(x.t()[1:3])
    assert h.clone().cpu().equal(x)


@pytest.mark.parametrize("view", [
    lambda t: t[1], lambda t: t[:, 2], lambda t: t[1:3, ::2], lambda t: t.t(),
    lambda t: t.permute(1, 0)[2:], lambda t: t.view(-1)[3:9].view(2, 3), lambda t: t[::2],
    lambda t: t.unsqueeze(1).expand(-1, 3, -1), lambda t: t.as_strided((3, 2), (1, 4), 2),
    lambda t: t.diagonal(), lambda t: t.unfold(1, 2, 1), lambda t: t[2, 1],
    lambda t: t.narrow(0, 1, 2).transpose(0, 1).unsqueeze(0)])
@pytest.mark.parametrize("deferred", [False, True])
def test_views(view, deferred, strict):
    x = values(4, 5)
    h = x.to(DEVICE)
    if deferred:
        x, h = x + 1, h + 1
    assert (view(h) * 2).cpu().equal(view(x) * 2)


def test_writes_to_parts_reach_every_alias(strict):
    x = values(4, 6)
    h = x.to(DEVICE)
    flat, flat_x = h.view(-1), x.view(-1)
    before, before_x = h * 2, x * 2
    h[1:3, ::2] = 7
    x[1:3, ::2] = 7
    h.t()[0].mul_(3)
    x.t()[0].mul_(3)
    flat[5] = -1
    flat_x[5] = -1
    assert h.cpu().equal(x) and flat.cpu().equal(flat_x) and before.cpu().equal(before_x)


def test_detach_shares_and_clone_does_not(strict):
    a = torch.arange(4.0, device=DEVICE)
    shared, cloned = a.detach(), a.clone()
    a.add_(1)
    assert shared.tolist() == [1, 2, 3, 4] and cloned.tolist() == [0, 1, 2, 3]


def test_resizing_keeps_the_elements():
    a = torch.arange(4.0, device=DEVICE)
    a.resize_(6)
    assert a[:4].tolist() == [0, 1, 2, 3]
    a.resize_(2)
    assert a.tolist() == [0, 1]


def test_another_type_of_the_same_storage():
    x = values(4)
    assert x.to(DEVICE).view(torch.int32).cpu().equal(x.view(torch.int32))


def test_save_and_load():
    module = torch.nn.Linear(3, 2).to(DEVICE)
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    loaded = torch.load(file, weights_only=True)
    assert loaded["weight"].device.type == DEVICE
    assert loaded["weight"].cpu().equal(module.weight.detach().cpu())
    assert copy.deepcopy(module).weight.device.type == DEVICE


def test_streams_and_events():
    event = torch.Event(device=DEVICE)
    with torch.halyard.stream(torch.halyard.Stream()):
        y = torch.ones(8, device=DEVICE) * 2
        event.record()
    event.synchronize()
    assert event.query() and y.sum().item() == 16


def test_time_between_events():
    first, second = torch.halyard.Event(enable_timing=True), torch.halyard.Event(enable_timing=True)
    first.record()
    y = torch.rand(64, 64, device=DEVICE)
    for _ in range(4):
        y = y @ y
    second.record()
    second.synchronize()
    assert 0 < first.elapsed_time(second) < 60e3
    with pytest.raises(ValueError, match="enable_timing"):
        torch.halyard.Event().elapsed_time(second)


def test_time_from_an_event_before_all_work():
    code = f"""if True:
        import torch, torch_halyard
        first, second = (torch.halyard.Event(enable_timing=True) for _ in range(2))
        first.record()
        y = torch.ones(8).to({DEVICE!r}) * 2
        second.record()
        second.synchronize()
        assert first.elapsed_time(second) > 0
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_random_numbers_repeat_with_the_seed():
    def draw():
        return torch.rand(8, device=DEVICE).cpu()
    torch.manual_seed(3)
    first, second = draw(), draw()
    state = torch.halyard.get_rng_state()
    third = draw()
    torch.halyard.set_rng_state(state)
    assert draw().equal(third) and not first.equal(second)
    torch.manual_seed(3)
    assert draw().equal(first)


def test_errors_are_exceptions_and_the_process_continues():
    x = torch.ones(3, device=DEVICE)
    with pytest.raises(RuntimeError, match="size of tensor a"):
        x + torch.ones(4, device=DEVICE)
    with pytest.raises(RuntimeError, match="same device"):
        x + torch.ones(3)
    with pytest.raises(RuntimeError):
        torch.ones(3, 4, device=DEVICE) @ torch.ones(3, 4, device=DEVICE)
    with pytest.raises(RuntimeError, match="below"):
        torch.ones(1, device="halyard:99")
    with pytest.raises(torch.OutOfMemoryError):
        (torch.ones(2**44, device=DEVICE, dtype=torch.uint8) + 1).cpu()
    with pytest.raises(torch.OutOfMemoryError, match="the device has"):
        torch.empty(2**46, device=DEVICE, dtype=torch.uint8)  # written or not
    assert (x + 1).tolist() == [2, 2, 2]


def test_generic_kernels_that_know_the_processor_only():
    """PyTorch's generic kernels of these ask for one of a built-in device, or read the storage."""
    x, exponents = torch.tensor([1.5, -3, 0.25]), torch.tensor([2, -1, 2**40])
    assert torch.ldexp(x.to(DEVICE), exponents.to(DEVICE)).tolist() == [6, -1.5, float("inf")]
    assert torch.ops.aten.range.out_(1, 4, out=torch.empty(4, device=DEVICE)).tolist() == [1, 2, 3, 4]
    shape = torch.tensor([3, 1], device=DEVICE)
    assert torch.ops.aten._reshape_from_tensor(x.to(DEVICE), shape).tolist() == x.view(3, 1).tolist()
    image, grid = values(1, 2, 4, 5), values(1, 3, 2, 2)
    sample = torch.ops.aten._grid_sampler_2d_cpu_fallback
    assert sample(image.to(DEVICE), grid.to(DEVICE), 0, 0, True).cpu().equal(
        sample(image, grid, 0, 0, True))


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_samples_of_a_grid_at_no_number(strict, mode, padding):
    image = values(1, 2, 4, 5)
    grid = torch.tensor([[[[float("nan"), 0], [float("inf"), -float("inf")], [0.5, -2], [1e30, 0]]]])
    sample = torch.nn.functional.grid_sample
    ours = sample(image.to(DEVICE), grid.to(DEVICE), mode, padding, align_corners=True)
    torch.testing.assert_close(
        ours.cpu(), sample(image, grid, mode, padding, align_corners=True), equal_nan=True)


def test_attention_with_a_mask_beside_the_causal_form(strict):
    x, mask = values(1, 2, 8, 4), values(8, 8) > -2
    mask |= torch.eye(8, dtype=torch.bool)
    attention = torch.nn.functional.scaled_dot_product_attention
    ours = attention(*[x.to(DEVICE)] * 3, mask.to(DEVICE), is_causal=True)
    torch.testing.assert_close(ours.cpu(), attention(x, x, x, mask & torch.ones(8, 8).tril().bool()))


def test_no_fallback_names_the_operator(strict):
    with pytest.raises(NotImplementedError, match="linalg_eigh"):
        torch.linalg.eigh(torch.eye(2, device=DEVICE))


def test_threads_share_the_device():
    results = {}

    def work(seed):
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(32, 32, generator=generator, requires_grad=True)
        h = x.detach().to(DEVICE).requires_grad_()
        for _ in range(10):
            x.grad = h.grad = None
            torch.tanh(x @ x).sum().backward()
            torch.tanh(h @ h).sum().backward()
        results[seed] = (h.grad.cpu() - x.grad).abs().max().item()

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and max(results.values()) < 1e-4


def test_no_arrays_are_left():
    def work():
        x = torch.randn(16, 16).to(DEVICE).requires_grad_()
        for _ in range(50):
            (x @ x).relu().sum().backward()
    work()
    torch.halyard.synchronize()
    before = torch.halyard.statistics()["arrays"]
    work()
    torch.halyard.synchronize()
    assert torch.halyard.statistics()["arrays"] <= before


@pytest.mark.parametrize("narrow, most", [(False, 16.5), (True, 10.5)])
def test_a_loss_of_classes_keeps_few_arrays_of_all_classes(narrow, most, strict):
    """Bytes for each logit. In float32 as PyTorch: logits, their log softmax, the loss's gradient and theirs."""
    rows, classes = 256, 4096
    x, w = (torch.randn(n, 8).to(DEVICE).requires_grad_() for n in (rows, classes))
    labels = (torch.arange(rows) % classes).to(DEVICE)
    torch.halyard.synchronize()
    before = torch.halyard.memory_allocated()
    torch.halyard.reset_peak_memory_stats()
    with torch.autocast(DEVICE, torch.bfloat16, enabled=narrow):
        logits = torch.nn.functional.linear(x, w)
        loss = torch.nn.functional.cross_entropy(logits, labels)
    loss.backward()
    torch.halyard.synchronize()
    assert (torch.halyard.max_memory_allocated() - before) / (rows * classes) < most
    assert loss.isfinite()


def test_masks(strict):
    x = values(4, 5, 3)
    rows, places = x[:, 0, 0] > 0, x > 0
    h, h_rows, h_places = (t.to(DEVICE) for t in (x, rows, places))
    assert h[h_places].cpu().equal(x[places]) and h[h_rows, :, 1].cpu().equal(x[rows, :, 1])
    assert h_places.nonzero().cpu().equal(places.nonzero())
    assert h.masked_select(h > 100).numel() == 0
    for t, mask, row in ((x, places, rows), (h, h_places, h_rows)):
        t[mask] = 2
        t[row] += torch.ones(3, device=t.device)
    assert h.cpu().equal(x) and "halyard" in repr(h)


def test_out_forms(strict):
    x = values(4, 5)
    h = x.to(DEVICE)
    out = torch.empty(5, 4, device=DEVICE).t()
    torch.clamp_min(h, 0.5, out=out)
    assert out.cpu().equal(x.clamp_min(0.5))
    torch.add(h, h, alpha=2, out=out)
    assert out.cpu().equal(x + 2 * x)
    torch.sum(h, 1, out=(total := torch.empty(4, device=DEVICE)))
    assert torch.allclose(total.cpu(), x.sum(1))
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.mul(h, h, out=torch.empty(4, 5, device=DEVICE, dtype=torch.int32))
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        h[0].add_(h.clone())


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64], ids=str)
def test_products_of_integers(dtype, strict):
    generator = torch.Generator().manual_seed(2)
    a, b = (torch.randint(-128, 128, shape, generator=generator).to(dtype) for shape in ((5, 300), (300, 7)))
    assert (a.to(DEVICE) @ b.to(DEVICE)).cpu().equal(a @ b)
    c = torch.arange(35).reshape(5, 7).to(dtype)
    assert torch.addmm(c.to(DEVICE), a.to(DEVICE), b.to(DEVICE), beta=3, alpha=2).cpu().equal(
        torch.addmm(c, a, b, beta=3, alpha=2))


def test_products_of_bytes_have_32_bits(strict):
    generator = torch.Generator().manual_seed(3)
    a, b = (torch.randint(-128, 128, shape, dtype=torch.int8, generator=generator)
            for shape in ((32, 64), (64, 24)))
    product = torch._int_mm(a.to(DEVICE), b.to(DEVICE))
    assert product.dtype == torch.int32 and product.cpu().equal(a.int() @ b.int())


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.uint8, torch.float16], ids=str)
@pytest.mark.parametrize("function", [
    lambda x: torch.nn.functional.hardtanh(x, 1.5, 3.7), lambda x: torch.nn.functional.hardtanh(x, 0, 2),
    lambda x: torch.nn.functional.threshold(x, 1.5, 20.7)])
def test_bounds_take_the_type(function, dtype, strict):
    x = torch.arange(0, 8).to(dtype)
    result = function(x.to(DEVICE))
    assert result.dtype == dtype and result.cpu().equal(function(x))


@pytest.mark.parametrize("function", [torch.nn.functional.leaky_relu, torch.nn.functional.hardshrink,
                                      torch.nn.functional.hardtanh])
def test_activations_refuse_what_the_processor_refuses(function):
    with pytest.raises(RuntimeError):
        function(torch.tensor([True]).to(DEVICE))


def test_lazy_clone(strict):
    x = torch.arange(4.0, device=DEVICE)
    y = torch._lazy_clone(x)
    y.add_(1)
    assert x.tolist() == [0, 1, 2, 3] and y.tolist() == [1, 2, 3, 4]


def test_modules_move_with_their_parameters(strict):
    """Tied parameters stay one, and an optimizer that was made before has those on the device."""
    embedding, output = torch.nn.Embedding(8, 4), torch.nn.Linear(4, 8, bias=False)
    output.weight = embedding.weight
    model = torch.nn.Sequential(embedding, output, torch.nn.BatchNorm1d(8))
    before = model.state_dict(keep_vars=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model.to(DEVICE)
    assert output.weight is embedding.weight and embedding.weight.device.type == DEVICE
    assert all(value.device.type == DEVICE for value in model.state_dict().values())
    start = embedding.weight.detach().clone()
    model(torch.tensor([1, 2], device=DEVICE)).square().sum().backward()
    optimizer.step()
    assert not embedding.weight.equal(start)
    model.half().float().cpu()
    assert output.weight is embedding.weight is before["0.weight"] and embedding.weight.is_cpu
    assert embedding.weight.grad.is_cpu and embedding.weight.dtype == torch.float32


def test_modules_move_although_parameters_have_weak_references(strict):
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    seen = weakref.ref(model[0].weight)
    model.to(DEVICE)
    assert all(p.device.type == DEVICE for p in model.parameters())
    assert not torch.__future__.get_swap_module_params_on_conversion() and seen is not None


@pytest.mark.parametrize("other", [lambda grad: grad.view(-1), weakref.ref])
def test_modules_move_with_gradients_that_others_refer_to(other):
    """Such a gradient cannot be swapped."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    model(values(2, 3)).sum().backward()
    before = [p.grad.clone() for p in model.parameters()]
    held = other(model[0].weight.grad)
    for device in (DEVICE, "cpu"):
        model.to(device)
        assert all(p.device.type == device and p.grad.device.type == device and p.grad.cpu().equal(grad)
                   for p, grad in zip(model.parameters(), before))
        held = other(model[1].weight.grad)
    assert held is not None


def test_modules_move_with_attributes_and_hooks_of_parameters():
    model, calls = torch.nn.Linear(3, 2), []
    model.weight.tag = "tag"
    handle = model.weight.register_hook(lambda grad: calls.append("gradient"))
    model.weight.register_post_accumulate_grad_hook(lambda p: calls.append("accumulated"))
    for device in (DEVICE, "cpu"):
        model.to(device)
        assert model.weight.tag == "tag"
        model(values(1, 3).to(device)).sum().backward()
        assert calls == ["gradient", "accumulated"]
        calls.clear()
    handle.remove()
    model.to(DEVICE)(values(1, 3).to(DEVICE)).sum().backward()
    assert calls == ["accumulated"]


def test_modules_of_two_threads_move():
    """The flag that makes PyTorch swap parameters is the process's: another thread's conversion does not see it."""
    moved, other = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    seen, errors = weakref.ref(other.weight), []
    swapping, converted = threading.Event(), threading.Event()

    def move(tensor):
        if torch.__future__.get_swap_module_params_on_conversion() and not swapping.is_set():
            swapping.set()
            converted.wait(1)
        return tensor.to(DEVICE)

    def convert():
        try:
            assert swapping.wait(60)
            other.half()
        except Exception as error:
            errors.append(error)
        converted.set()

    thread = threading.Thread(target=convert)
    thread.start()
    moved._apply(move)
    thread.join()
    assert not errors and other.weight.dtype == torch.float16 and other.weight is seen()
    assert moved.weight.device.type == DEVICE


def test_an_autograd_graph_of_a_module_that_moves_is_not_run():
    model = torch.nn.Linear(3, 2)
    y = model(values(1, 3)).sum()
    model.to(DEVICE)
    with pytest.raises(RuntimeError, match="swap_tensors"):
        y.backward()


LOST = """
import torch, torch_halyard
kept = torch.arange(4.).to("halyard") + 1
table = torch.ones(3, 2).to("halyard")
torch.halyard.synchronize()
x = kept.exp()
later = x + 1
rows = torch.nn.functional.embedding(torch.tensor([0, 2]).to("halyard"), table)


def fails(words, call):
    try:
        call()
    except RuntimeError as error:
        assert words in str(error), error
    else:
        raise AssertionError("it succeeded")


fails("fails by HAL_FAULT", lambda: x.cpu())
for _ in range(2):
    fails("got one (exp), which was lost when its batch failed: ", lambda: x.cpu())
    fails("which was lost when its batch failed: ", lambda: (x + kept).cpu())
    fails("which was lost when its batch failed: ", lambda: x[1:].cpu())
    fails("which was lost when its batch failed: ", lambda: x.__dlpack__())
    fails("which was lost when its batch failed: ", lambda: x.clone().cpu())
    fails("whose source (exp) was lost when its batch failed: ", lambda: later.cpu())
    torch.halyard.synchronize()
    assert kept.cpu().tolist() == [1, 2, 3, 4]
x.copy_(kept)
assert x.cpu().tolist() == [1, 2, 3, 4]
assert torch.nn.functional.embedding(torch.tensor([1]).to("halyard"), table).cpu().tolist() == [[1, 1]]
print("done")
"""


def test_values_of_a_batch_that_failed_are_lost():
    """A failure is told once; later reads are errors, and what does not depend on it goes on."""
    for number in range(1, 20):
        variables = {**os.environ, "HAL_LAYERS": "fault", "HAL_FAULT": f"submit:{number}"}
        ran = subprocess.run([sys.executable, "-c", LOST], env=variables, capture_output=True, text=True)
        if "line 5" in ran.stderr or "line 3" in ran.stderr or "line 4" in ran.stderr:
            continue  # it was an earlier batch
        assert ran.stdout == "done\n", ran.stderr
        return
    raise AssertionError("no batch failed")


INDEX = """
import sys, torch, torch_halyard
kept = torch.arange(4.).to("halyard") + 1
table = torch.ones(3, 2).to("halyard")
torch.halyard.synchronize()
rows = torch.nn.functional.embedding(torch.tensor([0, 7]).to("halyard"), table)
x = kept.reshape(2, 2)
for _ in range(int(sys.argv[2])):
    x = x.sum(0, keepdim=True) + x
for _ in range(int(sys.argv[1])):
    x = (x - x.sum()).cos()
for tensor in (x, kept):
    try:
        tensor.cpu()
    except Exception as error:
        print("fault" if "HAL_FAULT" in str(error) else "", "index" if "index was out" in str(error) else "")
"""


def test_an_index_out_of_range_is_told_after_a_later_batch_failed():
    """Of some length of the read, its first batch has the copy of the test, and its second one fails. An operation
    more in the beginning moves where batches end by less than the length does."""
    said = []
    for length, more in itertools.product(range(13, 17), range(2)):
        variables = {**os.environ, "HAL_LAYERS": "fault", "HAL_FAULT": "submit:3"}
        ran = subprocess.run([sys.executable, "-c", INDEX, str(length), str(more)], env=variables, capture_output=True,
                             text=True)
        said += [ran.stdout.split()] if ran.returncode == 0 else []
    assert any("fault" in words and "index" in words for words in said), said

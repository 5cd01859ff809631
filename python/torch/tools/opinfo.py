"""Compares halyard with PyTorch's processor on the samples of torch.testing's operator database.

opinfo.py [--dtype float32] [--kind forward|backward|inplace|out] [--samples N] [--seconds S]
          [--only TEXT] [--json FILE]

Prints each entry that differs with its first error, each entry that falls back with the operators
that do, and the totals: entries, those that agree, those that agree without any fallback.
"""
import argparse
import collections
import itertools
import json
import time
import warnings

import torch
import torch_halyard  # noqa: F401
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_leaves, tree_map

# Their results are not determined by their operands: random numbers, memory that nothing wrote.
UNDETERMINED = ("empty", "rand", "normal", "bernoulli", "multinomial", "dropout", "rrelu", "lowrank",
                "uniform", "exponential", "cauchy", "geometric", "fractional_max_pool", "poisson")
TOLERANCES = {torch.float16: (2e-3, 2e-3), torch.bfloat16: (2e-2, 2e-2),
              torch.float64: (1e-7, 1e-7)}


def moved(sample, device):
    def move(t):
        if not isinstance(t, torch.Tensor):
            return t
        return t.detach().clone().to(device).requires_grad_(t.requires_grad)
    result = sample.transform(move)
    if "device" in result.kwargs:
        result.kwargs["device"] = device
    return result


def to_processor(tree):
    return tree_map(lambda t: t.detach().cpu() if isinstance(t, torch.Tensor) else t, tree)


def compare(ours, theirs, dtype):
    rtol, atol = TOLERANCES.get(dtype, (2e-4, 2e-5))
    torch.testing.assert_close(to_processor(ours), to_processor(theirs), rtol=rtol, atol=atol,
                               equal_nan=True, check_device=False, check_stride=False)


def gradients(result, sample):
    ends = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad]
    starts = [t for t in tree_leaves((sample.input, sample.args, sample.kwargs))
              if isinstance(t, torch.Tensor) and t.requires_grad]
    return torch.autograd.grad(ends, starts, [torch.ones_like(t) for t in ends], allow_unused=True)


def call(op, kind, sample):
    function = op.inplace_variant if kind == "inplace" else op.op
    keywords = dict(sample.kwargs)
    if kind == "out":
        expected = op.op(sample.input, *sample.args, **keywords)
        keywords["out"] = tree_map(torch.empty_like, expected)
    torch.manual_seed(1)
    return function(sample.input, *sample.args, **keywords)


def is_determined(sample):
    """Whether no dropout draws random numbers."""
    if sample.kwargs.get("training") is True and 0.5 in [a for a in sample.args if a is not None
                                                         and not isinstance(a, torch.Tensor)]:
        return False
    return not (isinstance(sample.kwargs.get("dropout_p"), float) and sample.kwargs["dropout_p"] > 0)


def is_tested(op, dtype, kind):
    if dtype not in op.supported_dtypes("cpu") or any(word in op.name for word in UNDETERMINED):
        return False
    return {"forward": True, "backward": op.supports_autograd, "out": op.supports_out,
            "inplace": op.inplace_variant is not None}[kind]


def check_sample(op, sample, kind, dtype):
    """None where PyTorch's processor refuses the sample, else the error or an empty text."""
    theirs = moved(sample, "cpu")
    try:
        expected = call(op, kind, theirs)
        slopes = gradients(expected, theirs) if kind == "backward" else None
    except Exception:
        return None
    ours = moved(sample, "halyard")
    try:
        result = call(op, kind, ours)
        compare(result, expected, dtype)
        if slopes is not None:
            compare(gradients(result, ours), slopes, dtype)
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
    return ""


def check_entry(op, kind, dtype, limit, seconds):
    torch.halyard.fallbacks(reset=True)
    begin, errors, count = time.monotonic(), [], 0
    samples = op.sample_inputs("cpu", dtype, requires_grad=kind == "backward")
    try:
        for sample in itertools.islice(samples, limit):
            if (time.monotonic() - begin > seconds or not is_determined(sample)
                    or (kind == "inplace" and sample.broadcasts_input)):
                continue
            outcome = check_sample(op, sample, kind, dtype)
            count += outcome is not None
            errors += [outcome] if outcome else []
    except Exception as error:  # the database itself
        errors.append(f"samples: {error}"[:300])
    return {"op": op.name + ("." + op.variant_test_name if op.variant_test_name else ""),
            "samples": count, "errors": errors, "fallbacks": torch.halyard.fallbacks(reset=True)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--kind", default="forward",
                        choices=["forward", "backward", "inplace", "out"])
    parser.add_argument("--samples", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=4, help="of one entry")
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    dtype = getattr(torch, arguments.dtype)
    entries = [check_entry(op, arguments.kind, dtype, arguments.samples, arguments.seconds)
               for op in op_db if is_tested(op, dtype, arguments.kind) and arguments.only in op.name]
    entries = [entry for entry in entries if entry["samples"] or entry["errors"]]
    agree = [entry for entry in entries if not entry["errors"]]
    pure = [entry for entry in agree if not entry["fallbacks"]]
    for entry in entries:
        if entry["errors"]:
            print(f"differs: {entry['op']}: {len(entry['errors'])}/{entry['samples']}: "
                  f"{entry['errors'][0]}")
    causes = collections.Counter(name for entry in agree for name in entry["fallbacks"])
    for name, count in causes.most_common():
        print(f"falls back in {count}: {name}")
    print(f"{arguments.dtype} {arguments.kind}: {len(entries)} entries, {len(agree)} agree, "
          f"{len(pure)} without fallback")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(entries, file, indent=1)


if __name__ == "__main__":
    main()

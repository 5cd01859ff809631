"""Compares halyard with PyTorch's processor on the samples of torch.testing's operator database.

opinfo.py [--dtypes float32,int64] [--kinds forward,inplace,out,backward] [--samples N] [--seconds S]
          [--only TEXT] [--results FOLDER] [--table]

Prints the entries that differ or fail with their first error, those that fall back, and a table.
Where results differ by more than the tolerance, both are compared with what PyTorch's processor computes in
the next wider type: float32 of narrow floats, many of whose kernels round after each operation there, and
float64 of float32. A result whose largest error is at most twice the processor's agrees as well; the table's
last column counts such entries. The order of equal elements, which PyTorch leaves open, is not compared.
With --results each type and kind becomes a file of the folder; --table prints the table of those files
and measures nothing. Entries that are known to disagree, and why, are in
../tests/opinfo_exceptions.txt; the exit status is 1 where others do.

Each type and kind has a process, so that one that ends early costs one entry.
"""
import argparse
import collections
import itertools
import json
import os
import re
import subprocess
import sys
import time
import warnings

TYPES = ["float32", "float16", "bfloat16", "int64", "int32", "bool", "complex64"]
KINDS = ["forward", "inplace", "out", "backward"]
EXCEPTIONS = os.path.join(os.path.dirname(__file__), "..", "tests", "opinfo_exceptions.txt")

# Their results are not determined by their operands: random numbers, memory that nothing wrote.
UNDETERMINED = re.compile(
    r"(new_)?empty(_like|_strided|_permuted)?|rand(int|n)?(_like)?|normal|log_normal|bernoulli|"
    r"multinomial|.*dropout.*|.*rrelu|.*lowrank|uniform|exponential|cauchy|geometric|"
    r".*fractional_max_pool.*")
TOLERANCES = {"float16": (2e-3, 2e-3), "bfloat16": (2e-2, 2e-2)}
HAVE_STABLE_FORM = ("sort", "argsort")
HAVE_PLACES = ("topk", "kthvalue")  # of elements among equal ones
ON_PROCESSOR = ("tensor_split",)  # tensors among the arguments stay there, on every device


AS_NEAR = "as near"

# ---- One type and kind, in a process of its own ----

def moved(op, sample, device, wide=False):
    """A copy of a sample on a device; with `wide` its floats are of the next wider type."""
    import torch
    wider = {torch.float16: torch.float32, torch.bfloat16: torch.float32,
             torch.float32: torch.float64, torch.complex64: torch.complex128}

    def move(t):
        if not isinstance(t, torch.Tensor):
            return t
        copy = t.detach().clone().to(device, wider.get(t.dtype, t.dtype) if wide else t.dtype)
        return copy.requires_grad_(t.requires_grad)
    result = sample.transform(move)
    if op.name in ON_PROCESSOR:
        result.args = sample.args
    if op.name in HAVE_STABLE_FORM:
        result.kwargs = {**result.kwargs, "stable": True}
    if "device" in result.kwargs:
        result.kwargs["device"] = device
    return result


def tolerance_of(op, dtype):
    """The bounds for a type, or those that the database has for this operator where they are wider."""
    import torch
    from torch.testing._internal.common_device_type import toleranceOverride
    rtol, atol = TOLERANCES.get(str(dtype).removeprefix("torch."), (2e-4, 2e-5))
    for information in op.decorators:
        for decorator in getattr(information, "decorators", [information]):
            if isinstance(decorator, toleranceOverride) and dtype in decorator.d:
                rtol = max(rtol, decorator.d[dtype].rtol)
                atol = max(atol, decorator.d[dtype].atol)
    return {"rtol": rtol, "atol": atol}


def to_processor(tree):
    import torch
    from torch.utils._pytree import tree_map
    return tree_map(lambda t: t.detach().cpu() if isinstance(t, torch.Tensor) else t, tree)


def compare(ours, theirs, tolerance):
    import torch
    torch.testing.assert_close(ours, theirs, equal_nan=True, check_device=False, check_stride=False,
                               **tolerance)


def is_as_near(ours, theirs, exact):
    """Whether the largest error of each tensor is at most twice that of the processor's."""
    import torch
    from torch.utils._pytree import tree_leaves

    def error_of(x, y):
        finite = y.isfinite()
        if x.shape != y.shape or not torch.equal(x.isfinite(), finite):
            return float("inf")
        return (x[finite].to(y.dtype) - y[finite]).abs().max().item() if finite.any() else 0
    triples = list(zip(tree_leaves(ours), tree_leaves(theirs), tree_leaves(exact), strict=True))
    return all(isinstance(t, torch.Tensor) and o.dtype == t.dtype and e.dtype.is_floating_point | e.is_complex()
               and error_of(o, e) <= 2 * error_of(t, e) < float("inf")
               for o, t, e in triples if t is not None)


def gradients(result, sample):
    import torch
    from torch.utils._pytree import tree_leaves
    ends = [t for t in tree_leaves(result) if isinstance(t, torch.Tensor) and t.requires_grad]
    starts = [t for t in tree_leaves((sample.input, sample.args, sample.kwargs))
              if isinstance(t, torch.Tensor) and t.requires_grad]
    return torch.autograd.grad(ends, starts, [torch.ones_like(t) for t in ends], allow_unused=True)


def call(op, kind, sample):
    import torch
    from torch.utils._pytree import tree_map
    function = op.inplace_variant if kind == "inplace" else op.op
    keywords = dict(sample.kwargs)
    if kind == "out":
        expected = op.op(sample.input, *sample.args, **keywords)
        keywords["out"] = tree_map(torch.empty_like, expected)
    torch.manual_seed(1)
    return function(sample.input, *sample.args, **keywords)


def is_determined(sample):
    """Whether no dropout draws random numbers."""
    import torch
    if sample.kwargs.get("training") is True and 0.5 in [a for a in sample.args if a is not None
                                                         and not isinstance(a, torch.Tensor)]:
        return False
    return not (isinstance(sample.kwargs.get("dropout_p"), float) and sample.kwargs["dropout_p"] > 0)


def is_tested(op, dtype, kind):
    types = (op.supported_backward_dtypes if kind == "backward" else op.supported_dtypes)("cpu")
    if dtype not in types or UNDETERMINED.fullmatch(op.name):
        return False
    return {"forward": True, "backward": op.supports_autograd, "out": op.supports_out,
            "inplace": op.inplace_variant is not None}[kind]


def values_at(result, sample):
    """The values at the places that are the second result."""
    dim = sample.args[1] if len(sample.args) > 1 else sample.kwargs.get("dim", -1)
    places = result[1] if result[1].dim() == sample.input.dim() else result[1].unsqueeze(dim)
    return sample.input.gather(dim, places)


def values_of(op, kind, sample):
    """The results of a call, and their gradients, on the processor."""
    result = call(op, kind, sample)
    slopes = gradients(result, sample) if kind == "backward" else ()
    if op.name in HAVE_PLACES and sample.input.dim():
        result = (result[0], values_at(result, sample))
    return to_processor([result, list(slopes)])


def check_sample(op, sample, kind, tolerance):
    """None where PyTorch's processor refuses the sample, else "", "as near" or what is wrong."""
    try:
        expected = values_of(op, kind, moved(op, sample, "cpu"))
    except Exception:
        return None
    try:
        result = values_of(op, kind, moved(op, sample, "halyard"))
        compare(result, expected, tolerance)
    except Exception as error:
        text = f"{type(error).__name__}: {error}".replace("\n", " ")[:300]
        if not isinstance(error, AssertionError):
            return text
        try:
            exact = values_of(op, kind, moved(op, sample, "cpu", wide=True))
            return AS_NEAR if is_as_near(result, expected, exact) else text
        except Exception:
            return text
    return ""


def check_entry(op, kind, dtype, limit, seconds):
    import torch
    torch.halyard.fallbacks(reset=True)
    begin, errors, count, near = time.monotonic(), [], 0, 0
    tolerance = tolerance_of(op, dtype)
    samples = op.sample_inputs("cpu", dtype, requires_grad=kind == "backward")
    try:
        for sample in itertools.islice(samples, limit):
            if (time.monotonic() - begin > seconds or not is_determined(sample)
                    or (kind == "inplace" and sample.broadcasts_input)):
                continue
            outcome = check_sample(op, sample, kind, tolerance)
            count += outcome is not None
            near += outcome == AS_NEAR
            errors += [outcome] if outcome and outcome != AS_NEAR else []
    except Exception as error:  # of the database itself: it makes no more samples
        if count:
            errors.append(f"samples: {type(error).__name__}: {error}".replace("\n", " ")[:300])
    return {"samples": count, "as_near": near, "errors": errors,
            "fallbacks": torch.halyard.fallbacks(reset=True)}


def name_of(op):
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


def work(arguments):
    """Prints a line for each entry's begin and end, from the entry of a number on."""
    import torch
    import torch_halyard  # noqa: F401
    from torch.testing._internal.common_methods_invocations import op_db
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    dtype, kind = getattr(torch, arguments.dtypes), arguments.kinds
    tested = [op for op in op_db if is_tested(op, dtype, kind) and arguments.only in name_of(op)]
    for number, op in enumerate(tested[arguments.work:], arguments.work):
        print(json.dumps({"number": number, "op": name_of(op)}), flush=True)
        result = check_entry(op, kind, dtype, arguments.samples, arguments.seconds)
        print(json.dumps(result), flush=True)


# ---- All of them ----

def entries_of(dtype, kind, arguments):
    entries, first = [], 0
    while True:
        command = [sys.executable, __file__, "--dtypes", dtype, "--kinds", kind, "--only", arguments.only,
                   "--samples", str(arguments.samples), "--seconds", str(arguments.seconds),
                   "--work", str(first)]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        begun = None
        for line in worker.stdout:
            if not line.startswith("{"):
                continue
            message = json.loads(line)
            if "op" in message:
                begun = message
            elif begun:
                entries.append({"op": begun["op"], **message})
                first, begun = begun["number"] + 1, None
        if worker.wait() == 0:
            return entries
        if not begun:
            sys.exit(f"the process of {dtype} {kind} ended with status {worker.returncode}")
        entries.append({"op": begun["op"], "samples": 1, "as_near": 0, "fallbacks": {},
                        "errors": [f"the process ended with status {worker.returncode}"]})
        first = begun["number"] + 1


def state_of(entry):
    if entry["errors"]:
        differs = all(error.startswith("AssertionError") for error in entry["errors"])
        return "differ" if differs else "error"
    return "agree" if entry["samples"] else "no samples"


def read_exceptions():
    """Lines "operator | types | kinds | reason"; * is all of them. Empty ones and # are comments."""
    with open(EXCEPTIONS) as file:
        lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    return [tuple(part.strip() for part in line.split("|", 3)) for line in lines]


def reason_of(name, dtype, kind, exceptions):
    for op, types, kinds, reason in exceptions:
        if (op == name and (types == "*" or dtype in types.split(","))
                and (kinds == "*" or kind in kinds.split(","))):
            return reason
    return None


def report(dtype, kind, entries, exceptions):
    """Prints what disagrees and what falls back; returns how many disagree without a known reason."""
    unknown, states = 0, collections.Counter(state_of(entry) for entry in entries)
    for entry in entries:
        if state_of(entry) not in ("differ", "error"):
            continue
        reason = reason_of(entry["op"], dtype, kind, exceptions)
        unknown += reason is None
        print(f"{state_of(entry)}: {dtype} {kind} {entry['op']}: "
              f"{len(entry['errors'])}/{entry['samples']}: {entry['errors'][0]}"
              + (f" [known: {reason}]" if reason else ""))
    causes = collections.Counter(name for entry in entries for name in entry["fallbacks"])
    for name, count in causes.most_common():
        print(f"falls back: {dtype} {kind}: in {count}: {name}")
    near = [entry["op"] for entry in entries if entry["as_near"] and not entry["errors"]]
    if near:
        print(f"as near to the wider type's results: {dtype} {kind}: {', '.join(near)}")
    print(f"{dtype} {kind}: {dict(states)}, {pure_count(entries)} agree without fallback", flush=True)
    return unknown


def pure_count(entries):
    return sum(state_of(entry) == "agree" and not entry["fallbacks"] for entry in entries)


def cell_of(entries):
    states = collections.Counter(state_of(entry) for entry in entries)
    if not entries or not sum(states.values()) - states["no samples"]:
        return ""
    counts = " / ".join(str(states[name]) for name in ("agree", "differ", "error", "no samples"))
    return f"{counts} ({pure_count(entries)})"


def table_of(results):
    lines = ["| | " + " | ".join(KINDS) + " | as near |", "|---" * (len(KINDS) + 2) + "|"]
    for dtype in TYPES:
        of_type = [results.get((dtype, kind), []) for kind in KINDS]
        if any(of_type):
            near = sum(entry["as_near"] > 0 and not entry["errors"] for entry in sum(of_type, []))
            lines.append(f"| {dtype} | " + " | ".join(map(cell_of, of_type)) + f" | {near} |")
    return "\n".join(lines)


def file_of(folder, dtype, kind):
    return os.path.join(folder, f"{dtype}-{kind}.json")


def results_in(folder):
    results = {}
    for dtype, kind in itertools.product(TYPES, KINDS):
        if os.path.exists(file_of(folder, dtype, kind)):
            with open(file_of(folder, dtype, kind)) as file:
                results[dtype, kind] = json.load(file)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtypes", default=",".join(TYPES))
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=4, help="of one entry")
    parser.add_argument("--only", default="", help="a part of the operators' names")
    parser.add_argument("--results", help="a folder")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.work is not None:
        work(arguments)
        return 0
    exceptions, unknown = read_exceptions(), 0
    if arguments.table:
        results = results_in(arguments.results)
        for (dtype, kind), entries in results.items():
            unknown += report(dtype, kind, entries, exceptions)
        print(table_of(results))
        return unknown > 0
    results = {}
    for dtype, kind in itertools.product(arguments.dtypes.split(","), arguments.kinds.split(",")):
        results[dtype, kind] = entries_of(dtype, kind, arguments)
        unknown += report(dtype, kind, results[dtype, kind], exceptions)
        if arguments.results:
            os.makedirs(arguments.results, exist_ok=True)
            with open(file_of(arguments.results, dtype, kind), "w") as file:
                json.dump(results[dtype, kind], file, indent=1)
    print("agree / differ / error / no samples (agree without fallback)")
    print(table_of(results))
    return unknown > 0


if __name__ == "__main__":
    sys.exit(main())

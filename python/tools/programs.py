"""Random eager programs on halyard and NumPy, and the time of one call.

    python programs.py [--small 100] [--large 20] [--seed 1] [--turns 70] [--warm 0.5]

A program is a list of 6 to 20 operations on float32 arrays: most of them elementwise, with
reductions, views, products and choices, ended by a sum that is read. Both libraries run the same
program on the same numbers, in turns of about 1 ms, or of one call; a time is the least of the
turns. Turns are shorter than a time slice of the scheduler: on a busy machine a few longer turns
are all interrupted, and the worst of 100 ratios would tell of the machine. Halyard runs a program
for `--warm` seconds before, since it compiles the kernels of a new one in the background. Small
programs have arrays of 16 to 10,000 elements, large ones of 10^6 to 4 * 10^6, and a tenth of the
turns. Prints the programs, worst first, and the geometric means of NumPy's time over halyard's.
"""
import argparse
import math
import random
import time

import numpy

import halyard as hx


def steps(rng, small):
    """A program as a list of (operation, operands by their places)."""
    made = 3
    program = []
    for _ in range(rng.randint(6, 20)):
        kind = rng.choices(list(OPERATIONS), [weight for _, weight, _ in OPERATIONS.values()])[0]
        if kind == "product" and not small:
            kind = "multiply"
        count = OPERATIONS[kind][0]
        # Recent results are used more often than old ones.
        operands = [max(0, made - 1 - int(rng.expovariate(0.7))) for _ in range(count)]
        program.append((kind, operands))
        made += 1
    return program


OPERATIONS = {  # operands, weight, function of (namespace, operands...)
    "add": (2, 6, lambda xp, x, y: x + y),
    "subtract": (2, 4, lambda xp, x, y: x - y),
    "multiply": (2, 6, lambda xp, x, y: x * y),
    "divide": (2, 2, lambda xp, x, y: x / (abs(y) + 1)),
    "scale": (1, 4, lambda xp, x: x * 0.5 + 0.25),
    "tanh": (1, 2, lambda xp, x: xp.tanh(x)),
    "exp": (1, 2, lambda xp, x: xp.exp(-abs(x))),
    "sqrt": (1, 2, lambda xp, x: xp.sqrt(abs(x))),
    "square": (1, 2, lambda xp, x: x * x),
    "maximum": (2, 2, lambda xp, x, y: xp.maximum(x, y)),
    "where": (2, 2, lambda xp, x, y: xp.where(x > 0, x, y)),
    "center": (1, 2, lambda xp, x: x - xp.mean(x, axis=1, keepdims=True)),
    "columns": (1, 1, lambda xp, x: x - xp.max(x, axis=0)),
    "softmax": (1, 1, lambda xp, x: _softmax(xp, x)),
    "flip": (1, 1, lambda xp, x: x[::-1, :] + x),
    "product": (2, 1, lambda xp, x, y: (x @ y.T) @ y * 0.01),
}


def _softmax(xp, x):
    e = xp.exp(x - xp.max(x, axis=1, keepdims=True))
    return e / xp.sum(e, axis=1, keepdims=True)


def run(xp, program, inputs):
    values = list(inputs)
    for kind, operands in program:
        values.append(OPERATIONS[kind][2](xp, *[values[i] for i in operands]))
    return float(xp.sum(xp.tanh(values[-1])))


def measured(function, seconds, warm=0):
    """A function that measures one call over about `seconds`; as many, and `warm`, go before."""
    start = time.perf_counter()
    while time.perf_counter() - start < warm:
        function()
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < seconds or calls < 1:
        function()
        calls += 1

    def measure():
        begin = time.perf_counter()
        for _ in range(calls):
            function()
        return (time.perf_counter() - begin) / calls
    return measure


def compare(program, shape, seed, turns, warm):
    """Seconds of halyard and of NumPy."""
    numbers = numpy.random.default_rng(seed).standard_normal((3,) + shape, dtype=numpy.float32)
    ours = [hx.asarray(a) for a in numbers]
    theirs = list(numbers)
    a, b = run(hx, program, ours), run(numpy, program, theirs)
    if not math.isclose(a, b, rel_tol=1e-3, abs_tol=1e-3 * math.sqrt(numbers[0].size)):
        raise SystemExit(f"results differ: {a} and {b} of {program}")
    first = measured(lambda: run(hx, program, ours), 0.001, warm)
    second = measured(lambda: run(numpy, program, theirs), 0.001)
    times = [(first(), second()) for _ in range(turns)]
    return min(t[0] for t in times), min(t[1] for t in times)


def programs(name, count, seed, small, turns, warm):
    found = []
    for number in range(count):
        rng = random.Random(f"{seed} {name} {number}")
        if small:
            rows, columns = (int(2 ** rng.uniform(2, 6.64)) for _ in range(2))
        else:
            columns = int(2 ** rng.uniform(6, 12))
            rows = int(10 ** 6 * rng.uniform(1, 4) / columns) + 1
        program = steps(rng, small)
        ours, theirs = compare(program, (rows, columns), number, turns, warm)
        found.append((theirs / ours, rows, columns, ours, theirs, program))
    found.sort(key=lambda f: f[0])
    print(f"{name}: NumPy's time over halyard's, worst first; microseconds")
    for ratio, rows, columns, ours, theirs, program in found:
        print(f"{ratio:6.2f}  {rows}x{columns}  {ours * 1e6:.1f}  {theirs * 1e6:.1f}  "
              + " ".join(kind for kind, _ in program))
    mean = math.exp(sum(math.log(f[0]) for f in found) / len(found))
    print(f"{name}: {count} programs, geometric mean {mean:.2f}, median {found[count // 2][0]:.2f}, "
          f"worst {found[0][0]:.2f}")


def overhead(turns):
    """Microseconds of x = x + y on 1,024 floats, in a chain of 10,000 that is read once."""
    def chain(x, y):
        for _ in range(10000):
            x = x + y
        return float(x[0])
    numbers = numpy.ones(1024, numpy.float32)
    ours = [hx.asarray(numbers), hx.asarray(numbers * 1e-3)]
    theirs = [numbers, numbers * numpy.float32(1e-3)]
    times = []
    for _ in range(2 * turns):
        turn = []
        for x, y in (ours, theirs):
            begin = time.perf_counter()
            chain(x, y)
            turn.append((time.perf_counter() - begin) / 10000 * 1e6)
        times.append(turn)
    print(f"x + y on 1,024 floats: halyard {min(t[0] for t in times):.3f} us, "
          f"NumPy {min(t[1] for t in times):.3f} us")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, value in (("small", 100), ("large", 20), ("seed", 1), ("turns", 70)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--warm", type=float, default=0.5)
    options = parser.parse_args()
    numpy.seterr(all="ignore")
    overhead(options.turns)
    if options.small:
        programs("small", options.small, options.seed, True, options.turns, options.warm)
    if options.large:
        programs("large", options.large, options.seed, False, options.turns // 10 + 1,
                 options.warm)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""SciPy's factorisations with libhalyard_blas.so preloaded next to the same without it, worst ratio first.

factorisations.py LIBRARY [--sizes 64,128,...] [--types f,d] [--calls matmul,qr,...] [--turns N] [--seconds S] [--threads N]

Two processes of this Python, one with LD_PRELOAD=LIBRARY, take turns: each turn of a cell is at least
S seconds of calls, in parts of at least a millisecond, of which the least time counts, of the
processors with one thread, else of the clock. HALYARD_BLAS_DECIDE and the others apply to the first one. Needs SciPy that is linked with a
shared BLAS, such as Debian's (a wheel has its own inside, which nothing replaces).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

CALLS = ("matmul", "lu_factor", "cholesky", "qr", "svd", "solve")


def worker():
    import numpy as np
    from scipy import linalg

    random = np.random.default_rng(7)
    made = {}
    for line in sys.stdin:
        name, letter, n, seconds, clock = json.loads(line)
        key = letter, n
        if key not in made:
            a = random.standard_normal((n, n)).astype(letter)
            made[key] = a, (a @ a.T + n * np.eye(n)).astype(letter), random.standard_normal(n).astype(letter)
        a, definite, b = made[key]
        call = {"matmul": lambda: a @ definite, "lu_factor": lambda: linalg.lu_factor(a),
                "cholesky": lambda: linalg.cholesky(definite), "qr": lambda: linalg.qr(a),
                "svd": lambda: linalg.svd(a), "solve": lambda: linalg.solve(a, b)}[name]
        now = time.process_time if clock == "processor" else time.perf_counter
        begin = time.perf_counter()
        call()
        count = max(1, int(1e-3 / (time.perf_counter() - begin)))
        least, end = float("inf"), time.perf_counter() + seconds
        while least == float("inf") or time.perf_counter() < end:
            begin = now()
            for _ in range(count):
                call()
            took = (now() - begin) / count
            if took > 0:  # clocks of processors step back on some virtual machines
                least = min(least, took)
        print(least, flush=True)


def start(library, threads):
    environment = dict(os.environ, OPENBLAS_NUM_THREADS=str(threads), OMP_NUM_THREADS=str(threads),
                       HAL_CPU_THREADS=str(threads))
    if library:
        environment["LD_PRELOAD"] = library
    return subprocess.Popen([sys.executable, __file__, "--worker"], env=environment, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def ask(process, cell):
    process.stdin.write(json.dumps(cell) + "\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        sys.exit(f"the process ended at {cell}, status {process.wait()}")
    return float(answer)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("library")
    parser.add_argument("--sizes", default="64,128,256,512,1024")
    parser.add_argument("--types", default="f,d")
    parser.add_argument("--calls", default=",".join(CALLS))
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    clock = "processor" if options.threads == 1 else "wall"
    both = [start(os.path.abspath(options.library), options.threads), start(None, options.threads)]
    rows = []
    for n in map(int, options.sizes.split(",")):
        for letter in options.types.split(","):
            for name in options.calls.split(","):
                least = [float("inf")] * 2
                for turn in range(options.turns):
                    for which in (0, 1) if turn % 2 == 0 else (1, 0):
                        took = ask(both[which], (name, letter, n, options.seconds, clock))
                        least[which] = min(least[which], took)
                rows.append((least[1] / least[0], name, letter, n, *least))
    for process in both:
        process.stdin.close()
        process.wait()
    for ratio, name, letter, n, ours, theirs in sorted(rows):
        print(f"{ratio:6.2f}  {name} {letter} {n}: {ours * 1e3:.3f} and {theirs * 1e3:.3f} ms")
    ratios = [row[0] for row in rows]
    print(f"{len(rows)} cells, {options.threads} threads: without over with: worst {min(ratios):.2f}, "
          f"median {statistics.median(ratios):.2f}, below 0.97: {sum(r < 0.97 for r in ratios)}")


if __name__ == "__main__":
    if sys.argv[1:] == ["--worker"]:
        worker()
    else:
        main()

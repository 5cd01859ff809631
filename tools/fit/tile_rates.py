#!/usr/bin/env python3
"""Fits the rates of staged GEMM tiles (ops_gemm_rates: step and end) to measured times.

    hal-bench gemm --device DEVICE --random 300 --seed 1 --regret --json times.json
    tools/fit/tile_rates.py times.json --units 132

--regret times every tile that a product could take. Of each tile the program prints the
nanoseconds of a step of k of one group (`step`, on a unit with as many groups as it can have) and
of a group's start and end (`end`), by weighted least squares of relative errors, with the median
and the 90th percentile of the error that remains. The model is that of the cost of staged tiles,
without the factors of narrow accesses, which a second fit of products with one layout shows. Times
of split products are left out. Python's standard library is all that it needs."""
import argparse
import collections
import json
import math
import re
import statistics
import sys

TILE = re.compile(r"portable: tile (\d+) x (\d+) x (\d+),.* staged in shared memory")
SPLIT = re.compile(r"split|parts")


def candidates(paths):
    """Yields (m, n, k, tile, nanoseconds) of every timed staged tile."""
    for path in paths:
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)["rows"]
        for row in rows:
            for candidate in row.get("candidates", []):
                found = TILE.search(candidate["how"])
                if found and not SPLIT.search(candidate["how"].split("portable:")[1]):
                    tile = tuple(int(number) for number in found.groups())
                    yield row["m"], row["n"], row["k"], tile, 1000 * candidate["median_us"]


def terms(m, n, k, tile, units, resident):
    """How often `step` and `end` count in the time of a product."""
    groups = math.ceil(m / tile[0]) * math.ceil(n / tile[1])
    steps = math.ceil(k / tile[2]) * tile[2]
    most = math.ceil(groups / units)
    full, rest = divmod(most, resident)
    return steps * most, full + (rest > 0)


def least_squares(rows):
    """Solves t = x * step + y * end for rows (x, y, t), each weighted by 1 / t; never negative."""
    xx = sum((x / t) ** 2 for x, y, t in rows)
    yy = sum((y / t) ** 2 for x, y, t in rows)
    xy = sum(x * y / t / t for x, y, t in rows)
    xt = sum(x / t for x, y, t in rows)
    yt = sum(y / t for x, y, t in rows)
    determinant = xx * yy - xy * xy
    if determinant > 1e-12 * xx * yy:
        step, end = (xt * yy - yt * xy) / determinant, (xx * yt - xy * xt) / determinant
        if step >= 0 and end >= 0:
            return step, end
    return (xt / xx, 0.0) if xt * xt * yy > yt * yt * xx else (0.0, yt / yy)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("files", nargs="+", help="what hal-bench --regret --json wrote")
    parser.add_argument("--units", type=int, required=True, help="compute units of the device")
    parser.add_argument("--resident", type=int, default=1, help="groups of a unit at once")
    parser.add_argument("--launch", type=float, default=947, help="nanoseconds of a launch")
    parser.add_argument("--element", type=float, default=0.00091, help="of an element of C")
    arguments = parser.parse_args()
    by_tile = collections.defaultdict(list)
    for m, n, k, tile, time in candidates(arguments.files):
        rest = time - arguments.launch - m * n * arguments.element
        if rest > 0:
            by_tile[tile].append((*terms(m, n, k, tile, arguments.units, arguments.resident), rest))
    if not by_tile:
        sys.exit("no staged tiles: hal-bench gemm needs --regret on a device that stages tiles")
    print("tile            times    step       end  error: median, 90 of 100")
    for tile, rows in sorted(by_tile.items()):
        step, end = least_squares(rows)
        errors = sorted(abs(math.log(max(x * step + y * end, 1e-9) / t)) for x, y, t in rows)
        print(f"{'x'.join(map(str, tile)):14} {len(rows):6} {step:9.2f} {end:9.0f}"
              f"  {statistics.median(errors):6.1%} {errors[len(errors) * 9 // 10]:6.1%}")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""the products that hal-bench gemm measured, in PyTorch, worst ratio first.

    hal-bench gemm --device cpu --random 100 --json gemm.json
    python3 bench/peers/pytorch/gemm.py --device cpu --rows gemm.json --json torch.json

Each product is torch.mm, of i8 torch._int_mm, of f8_e4m3 torch._scaled_mm with sums in F32, of
operands stored as hal-bench stores them, with a result that exists. Products that PyTorch refuses
are left out.
"""
import argparse
import json
import os

import torch

from sequential import Bench

TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16,
         "i8": torch.int8, "f8_e4m3": torch.float8_e4m3fn}
RESULTS = {torch.int8: torch.int32, torch.float8_e4m3fn: torch.float32}


def operand(bench, dtype, rows, columns, is_transposed):
    shape = (columns, rows) if is_transposed else (rows, columns)
    if dtype == torch.int8:
        memory = torch.randint(-128, 128, shape, device=bench.device, dtype=dtype)
    elif dtype == torch.float8_e4m3fn:
        memory = (torch.rand(shape, device=bench.device) - 0.5).to(dtype)
    else:
        memory = torch.rand(shape, device=bench.device, dtype=dtype) - 0.5
    return memory.t() if is_transposed else memory


def measure(bench, row):
    layout = row["case"].split(",", maxsplit=1)[0].split()[2:] or ["nn"]
    dtype, m, n, k = TYPES[row["type"]], row["m"], row["n"], row["k"]
    a = operand(bench, dtype, m, k, layout[0][0] == "t")
    b = operand(bench, dtype, k, n, layout[0][1] == "t")
    c = torch.empty((m, n), device=bench.device, dtype=RESULTS.get(dtype, dtype))
    one = torch.ones((), device=bench.device)

    def scaled(a, b, out):
        torch._scaled_mm(a, b, one, one, out_dtype=out.dtype, out=out)

    multiply = {torch.int8: torch._int_mm, torch.float8_e4m3fn: scaled}.get(dtype, torch.mm)
    try:
        multiply(a, b, out=c)
    except RuntimeError as error:
        print(f"{row['case']:36} refused: {str(error).splitlines()[0]}", flush=True)
        return False
    bench.add(row["case"], "torch_eager", lambda: multiply(a, b, out=c), 1)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--rows", required=True, help="what hal-bench gemm --json wrote")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=0.05, help="for each product")
    parser.add_argument("--json", help="file to write")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    with open(options.rows, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    bench = Bench(options)
    rows = [row for row in rows if measure(bench, row)]
    ratios = sorted((theirs["min_us"] / ours["min_us"], ours["case"], ours["type"])
                    for ours, theirs in zip(rows, bench.rows))
    for ratio, case, kind in ratios:
        print(f"{ratio:8.2f} {kind} {case}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"suite": "torch_gemm", "torch": torch.__version__,
                       "threads": options.threads, "rows": bench.rows}, file, indent=1)


if __name__ == "__main__":
    with torch.inference_mode():
        main()

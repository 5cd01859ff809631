#!/usr/bin/env python3
"""products of quantised weights in PyTorch, next to the rows of hal-bench quantised.

    hal-bench quantised --device cuda --json ours.json
    python3 bench/peers/pytorch/quantised.py --rows ours.json --json torch.json
    hal-bench quantised --device cpu --threads 1 --thread-time --json ours.json
    python3 bench/peers/pytorch/quantised.py --rows ours.json --device cpu

Prints, for each row, PyTorch's time over ours: _weight_int8pack_mm for int8, _weight_int4pack_mm for
int4 with groups, _scaled_mm for fp8, and mm of bf16 for all. Weights change from call to call within
a CUDA graph until they exceed what caches hold, as in hal-bench. A call that PyTorch does not have
on the device is named with its reason. With --device cpu the peers are _weight_int8pack_mm,
_weight_int4pack_mm_for_cpu and the decoding of int8 weights before mm, of f32 and bf16, by one
thread's processor time; the least of some calls, as of the rows' min_us.
"""
import argparse
import json
import statistics
import sys
import time

import torch

BEYOND = 256e6


def make_int8(n, k, _group):
    w = torch.randint(-128, 128, (n, k), dtype=torch.int8, device="cuda")
    scales = torch.rand(n, device="cuda", dtype=torch.bfloat16)
    return lambda x: torch._weight_int8pack_mm(x, w, scales)


def make_int4(n, k, group):
    group = group or 128
    w = torch.randint(0, 256, (n, k // 2), dtype=torch.uint8, device="cuda")
    packed = torch._convert_weight_to_int4pack(w, 8)
    scales = torch.rand(k // group, n, 2, device="cuda", dtype=torch.bfloat16)
    return lambda x: torch._weight_int4pack_mm(x, packed, group, scales)


def make_fp8(n, k, _group):
    w = torch.rand(n, k, device="cuda").to(torch.float8_e4m3fn).t()
    one = torch.ones((), device="cuda")
    return lambda x: torch._scaled_mm(x.to(torch.float8_e4m3fn), w, scale_a=one, scale_b=one,
                                      out_dtype=torch.bfloat16)


def make_bf16(n, k, _group):
    w = torch.rand(n, k, device="cuda", dtype=torch.bfloat16).t()
    return lambda x: torch.mm(x, w)


KINDS = {"int8": (make_int8, 1.0), "int4": (make_int4, 0.5), "fp8": (make_fp8, 1.0),
         "bf16": (make_bf16, 2.0)}


def measure(kind, m, n, k, group):
    """Median microseconds of a product."""
    make, size = KINDS[kind]
    count = max(2, min(256, int(BEYOND / (n * k * size)) + 1))
    calls = [make(n, k, group) for _ in range(count)]
    x = torch.rand(m, k, device="cuda", dtype=torch.bfloat16)
    calls[0](x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call(x)
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    times = []
    end = time.perf_counter() + 0.2
    while time.perf_counter() < end or len(times) < 9:
        begin = time.perf_counter()
        for _ in range(4):
            graph.replay()
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) * 1e6 / (4 * count))
    return statistics.median(times)


def make_cpu(kind, n, k, group):
    """A product by weights, of a type of A."""
    kind, type_ = kind.split("_")[0], torch.bfloat16 if kind.endswith("_bf16") else torch.float32
    if kind == "int4":
        codes = torch.randint(0, 16, (n, k), dtype=torch.int32)
        packed = torch._convert_weight_to_int4pack_for_cpu(codes, 1)
        scales = torch.rand(k // (group or 128), n, 2).to(type_)
        return type_, lambda x: torch._weight_int4pack_mm_for_cpu(x, packed, group or 128, scales)
    w = torch.randint(-128, 128, (n, k), dtype=torch.int8)
    scales = torch.rand(n).to(type_)
    if kind == "int8":
        return type_, lambda x: torch._weight_int8pack_mm(x, w, scales)
    return type_, lambda x: torch.mm(x, (w.to(type_) * scales[:, None]).t())


def measure_cpu(kind, m, n, k, group):
    """Least microseconds of a product by one thread."""
    type_, call = make_cpu(kind, n, k, group)
    x, times = torch.rand(m, k).to(type_), []
    call(x)
    for _ in range(5):
        begin = time.process_time()
        call(x)
        times.append((time.process_time() - begin) * 1e6)
    return min(times)


CPU_PEERS = {"int8": ("int8_f32", "int8_bf16", "copy_f32"), "int4": ("int4_f32", "int4_bf16")}


def print_cpu(rows):
    """The peers of each row on processors."""
    torch.set_num_threads(1)
    for row in rows:
        name, shape = row["case"], (row["m"], row["n"], row["k"])
        group = int(name.split("/")[1].split(" ")[0]) if "/" in name else 0
        line = f"{name}: ours {row['min_us']:.0f} us"
        for kind in CPU_PEERS.get(name.split("/")[0].split(" ")[0], ()):
            us = measure_cpu(kind, *shape, group)
            line += f"; torch {kind} {us:.0f} us: {us / row['min_us']:.2f}"
        print(line, flush=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", required=True, help="what hal-bench quantised --json wrote")
    parser.add_argument("--json", help="file to write")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options = parser.parse_args()
    with open(options.rows, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    if options.device == "cpu":
        return print_cpu(rows)
    result, seen = [], {}
    for row in rows:
        name = row["case"]
        kind, m, n, k = name.split("/")[0].split(" ")[0], row["m"], row["n"], row["k"]
        group = int(name.split("/")[1].split(" ")[0]) if "/" in name else 0
        line = f"{name}: ours {row['median_us']:.1f} us"
        for peer in (kind, "bf16"):
            key = (peer, m, n, k, group if peer == "int4" else 0)
            if peer not in KINDS:
                continue
            if key not in seen:
                try:
                    seen[key] = measure(*key)
                except (RuntimeError, NotImplementedError, AttributeError) as error:
                    print(f"{key}: {str(error).splitlines()[0]}", file=sys.stderr)
                    seen[key] = None
                    torch.cuda.synchronize()
                torch.cuda.empty_cache()
            if seen[key]:
                line += f"; torch {peer} {seen[key]:.1f} us: {seen[key] / row['median_us']:.2f}"
                result.append({"case": name, "peer": f"torch_{peer}", "median_us": seen[key]})
        print(line, flush=True)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"suite": "torch_quantised", "torch": torch.__version__,
                       "device": torch.cuda.get_device_name(), "rows": result}, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""the main program of pytorch/grid.py, pytorch/dense.py and pytorch/attention.py, which measure cells that
hal-bench listed with --list."""
import argparse
import json
import os
import sys
import time

import torch

from sequential import Bench


def parse(description, suite, modes):
    parser = argparse.ArgumentParser(description=description.split("\n", maxsplit=1)[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--cells", required=True, help=f"what hal-bench {suite} --list printed")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--modes", default=modes, help=f"of {modes}")
    parser.add_argument("--filter", default="", help="words in the names of cells, with commas")
    parser.add_argument("--every", type=int, default=1, help="of N cells only the first")
    parser.add_argument("--compile-seconds", type=float, default=300.0,
                        help="after which no cell is compiled")
    parser.add_argument("--seconds", type=float, default=0.05, help="for each figure")
    parser.add_argument("--json", help="file to write")
    return parser.parse_args()


def write(path, suite, listed, options, bench):
    name = torch.cuda.get_device_name() if bench.device.type == "cuda" else ""
    result = {"suite": f"torch_{suite}", "torch": torch.__version__,
              "device": {"name": name, "type": bench.device.type},
              "threads": options.threads, "rows": bench.rows}
    if "seed" in listed:
        result["seed"] = listed["seed"]
    with open(path, "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)


def main(description, suite, modes, measure):
    """Calls measure(bench, cell, listed, modes, compile_end) for each cell that the options select.
    `listed` is what hal-bench printed. A cell that fails is reported and left out."""
    options = parse(description, suite, modes)
    torch.set_num_threads(options.threads)
    with open(options.cells, encoding="utf-8") as file:
        listed = json.load(file)
    words = options.filter.split(",")
    cells = [cell for cell in listed["cells"]
             if any(word in cell["case"] for word in words)][::options.every]
    bench, failed = Bench(options), 0
    compile_end = time.perf_counter() + options.compile_seconds
    for cell in cells:
        try:
            measure(bench, cell, listed, options.modes.split(","), compile_end)
        except RuntimeError as error:  # of torch.compile, or out of memory
            print(f"{cell['case']}: {str(error).splitlines()[0]}", file=sys.stderr)
            failed += 1
        if bench.device.type == "cuda":
            torch.cuda.empty_cache()
    if options.json:
        write(options.json, suite, listed, options, bench)
    return 1 if failed else 0

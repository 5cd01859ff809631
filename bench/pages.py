#!/usr/bin/env python3
"""The pages of docs/benchmarks from the JSON of hal-bench.

pages.py add PAGE TITLE FILE... [--join TORCH.json] [--against OTHER.json NAME] [--peers NAMES]
         [--date DATE] [--command TEXT] [--least]
    keeps the rows of the files, of one run of hal-bench or of several turns, as the workloads TITLE
    in docs/benchmarks/PAGE.json.gz; workloads of that title are replaced. --join: what a program of
    bench/peers/pytorch measured. --against: another device's rows of the same run are a peer.
    --least: least times instead of medians. Date and command are the file's own unless given.
pages.py write      writes docs/benchmarks: a page and a plot for each PAGE.json.gz, and the list
pages.py check      fails if a page, a plot or the list is not what `write` would write
"""
import argparse
import gzip
import html
import json
import math
import re
import statistics
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "benchmarks"
MAX_LINES = 120  # of a page
MAX_BYTES = 300_000  # of the folder
# Peers that are measured to understand a row, not to compare with: not on the pages.
INTERNAL = ("plain", "copies", "staged", "unfused", "normwise", "first_", "by_layers", "one_queue", "cpu")
NAMES = {"copy": "copy on the device", "triad": "triad in C", "raw": "the driver's own calls",
         "raw_ordered": "the driver's own calls", "raw_by_target": "the driver's own calls",
         "torch_eager": "PyTorch, eager", "torch_graph": "PyTorch, CUDA graph", "torch_ddp": "PyTorch DDP",
         "torch_one": "PyTorch, one rank", "numpy": "NumPy", "best": "best other kernel", "one": "one rank",
         "openblas": "OpenBLAS", "blis": "BLIS", "nccl": "NCCL", "cublas": "cuBLAS", "clblast": "CLBlast",
         "stream": "streaming triad in C", "torch_compiled": "PyTorch, compiled"}


def main(arguments):
    parser = argparse.ArgumentParser(usage=__doc__)
    commands = parser.add_subparsers(dest="what", required=True)
    add = commands.add_parser("add")
    for name in ("page", "title"):
        add.add_argument(name)
    add.add_argument("files", nargs="+")
    add.add_argument("--join", action="append", default=[])
    add.add_argument("--against", nargs=2, action="append", default=[])
    for name in ("--peers", "--date", "--command"):
        add.add_argument(name)
    add.add_argument("--least", action="store_true")
    commands.add_parser("write")
    commands.add_parser("check")
    options = parser.parse_args(arguments)
    if options.what == "add":
        return add_run(options)
    texts = all_texts()
    if options.what == "check":
        return check(texts)
    for name, text in texts.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0



def without_folders(command):
    """The command with the names of its files alone: their folders are those of one machine."""
    return re.sub(r"(--(?:json|join|svg|rows) )\S*/", r"\1", command)


def load(path):
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def add_run(options):
    run = run_of([load(file) for file in options.files], options)
    path = FOLDER / f"{options.page}.json.gz"
    page = load(path) if path.exists() else {"device": run["device"], "runs": []}
    if not run["rows"] or (options.peers and not run["rows"][0][4]):
        sys.exit(f"pages.py: {options.title}: no row has a peer")
    page["runs"] = [old for old in page["runs"] if old["title"] != run["title"]] + [run]
    save(path, page)
    return 0


def save(path, page):
    text = json.dumps(page, separators=(",", ":"), sort_keys=True)
    with open(path, "wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
        packed.write(text.encode())


def run_of(files, options):
    """One run as the pages keep it: {device, driver, host, date, command, title, rows}; a row is
    [case, type, us, GFLOP/s or 0, {peer: us}]."""
    first, key = files[0], "min_us" if options.least else "median_us"
    rows, flops = {}, {}
    for file in files:
        for row in file["rows"]:
            name = (row["case"], row["type"])
            known = rows.setdefault(name, [row[key], {}])
            known[0] = min(known[0], row[key]) if options.least else row[key]
            flops[name] = (row["gflops"] or 0) * row["median_us"]
            for peer, time in row["peers"].items():
                peer = "nccl" if file["suite"] == "collectives" and peer == "raw" else peer
                if not peer.startswith(INTERNAL) and time[key]:
                    put(known[1], peer, time[key], options.least)
    for file in options.join:
        for row in load(file)["rows"]:
            for name, known in rows.items():
                if name[0] == row["case"] or name[0].startswith(row["case"] + ","):
                    put(known[1], row["peer"], row[key], options.least)
    for file, peer in options.against:
        for row in load(file)["rows"]:
            if (row["case"], row["type"]) in rows:
                put(rows[(row["case"], row["type"])][1], peer, row[key], options.least)
    wanted = options.peers.split(",") if options.peers else None
    kept = [[*name, round4(us), round4(flops[name] / us),
             {peer: round4(time) for peer, time in peers.items() if not wanted or peer in wanted}]
            for name, (us, peers) in rows.items()]
    return {"title": options.title, "device": first["device"]["name"], "plugin": first["device"]["plugin"],
            "driver": first["device"]["driver"], "host": first["host"]["processor"],
            "cores": first["host"]["cores"], "threads": first["host"]["threads"],
            "date": options.date or first["date"], "command": without_folders(options.command or first["command"]),
            "least": options.least, "rows": [row for row in kept if row[4]] or kept}


def put(peers, name, time, least):
    peers[name] = min(peers[name], time) if least and name in peers else time


def round4(value):
    return float(f"{value:.4g}")


def short(value):
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def workloads(run):
    """(ratio of speeds, case, us, GFLOP/s, peer, its us), worst first; the fastest peer counts."""
    found = []
    for case, kind, us, gflops, peers in run["rows"]:
        label = case if not kind or kind in case.split() else f"{case} {kind}"
        peer, time = min(peers.items(), key=lambda item: item[1]) if peers else ("", math.nan)
        found.append((time / us, label, us, gflops, NAMES.get(peer, peer), time))
    return sorted(found)


def all_texts():
    texts, pages = {}, []
    for path in sorted(FOLDER.glob("*.json.gz")):
        name = path.name.removesuffix(".json.gz")
        page = load(path)
        page["runs"].sort(key=lambda run: run["title"])
        texts[f"{name}.md"], texts[f"{name}.svg"] = page_text(name, page), plot(page)
        pages.append((name, page))
    texts["README.md"] = list_text(pages)
    return texts


def check(texts):
    faults = []
    for name, text in texts.items():
        path = FOLDER / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            faults.append(f"docs/benchmarks/{name} is stale: run bench/pages.py write")
        if name.endswith(".md") and text.count("\n") > MAX_LINES:
            faults.append(f"docs/benchmarks/{name} has more than {MAX_LINES} lines")
    files = [path for path in FOLDER.iterdir()]
    faults += [f"docs/benchmarks/{path.name} belongs to no page" for path in files
               if path.name not in texts and not path.name.endswith(".json.gz")]
    size = sum(path.stat().st_size for path in files)
    if size > MAX_BYTES:
        faults.append(f"docs/benchmarks has {size} bytes, more than {MAX_BYTES}")
    for fault in faults:
        print(fault)
    print(f"pages: {len(texts)} files, {size} bytes, {len(faults)} faults")
    return 1 if faults else 0


GENERATED = "<!-- Generated by bench/pages.py from the JSON next to this page. -->\n"


def list_text(pages):
    lines = [GENERATED + "# Benchmarks", "",
             "The newest figures of each device, one page for each plugin. A ratio is the speed of Halyard over that "
             "of the peer in the", "same run: above 1 Halyard is faster. [bench.md](../bench.md) says how hal-bench "
             "measures and how a page is made.", "",
             "| page | device | workloads | median ratio | dates |", "|---|---|---|---|---|"]
    for name, page in pages:
        ratios = [w[0] for run in with_peers(page) for w in workloads(run)]
        dates = sorted({run["date"] for run in page["runs"]})
        lines.append(f"| [{name}]({name}.md) | {page['device']} | {len(ratios)} | "
                     f"{statistics.median(ratios):.2f} | {dates[0]} to {dates[-1]} |")
    return "\n".join(lines) + "\n"


def page_text(name, page):
    alone, runs = without_peers(page), with_peers(page)
    commands = list(dict.fromkeys(run["command"] for run in runs + alone))
    drivers = sorted({run["driver"] for run in runs + alone})
    lines = [GENERATED + f"# {page['device']}, {runs[0]['plugin']}", "",
             f"Driver: {'; '.join(drivers)}. Host: {runs[0]['host']}.",
             "Ratio: speed of Halyard over that of the fastest peer in the same run; above 1 Halyard is faster.",
             "Times are medians, those with an asterisk least times.", "",
             f"![Ratios of each set of workloads]({name}.svg)", "", "## Sets of workloads", "",
             "| workloads | cases | worst | median | at 0.9 or more | date | command |",
             "|---|---|---|---|---|---|---|"]
    summary, rows = [], []
    for run in runs:
        found = workloads(run)
        ratios = [w[0] for w in found]
        number = commands.index(run["command"]) + 1
        summary.append((ratios[0], f"| {run['title']} | {len(found)} | {ratios[0]:.2f} | "
                        f"{statistics.median(ratios):.2f} | {sum(r >= 0.9 for r in ratios)} | {run['date']} | {number} |"))
        rows.append([(w, run, number) for w in found])
    lines += [line for _, line in sorted(summary)]
    tail = []
    if alone:
        tail = ["", "## Without a peer", "", "| workload | ours | date | command |", "|---|---|---|---|"]
        tail += [f"| {w[1]} | {short(w[2])} µs | {run['date']} | {commands.index(run['command']) + 1} |"
                 for run in alone for w in workloads(run)]
    tail += ["", "## Commands", ""] + [f"{i}. `{command}`" for i, command in enumerate(commands, 1)]
    head = ["", "## Workloads, worst first", "", "| workload | ours | peer | ratio | date | command |",
            "|---|---|---|---|---|---|"]
    # The first lines hold line breaks.
    room = MAX_LINES - sum(line.count("\n") + 1 for line in lines + head + tail)
    chosen = sorted(share(rows, room), key=lambda entry: entry[0])
    cut = len(chosen) < sum(map(len, rows))
    head[1] = "## Workloads, worst first" + (f": the worst {len(chosen)}, some of each set" if cut else "")
    lines += head
    for (ratio, case, us, gflops, peer, time), run, number in chosen:
        star = "*" if run["least"] else ""
        rate = f", {short(gflops / 1000)} TFLOP/s" if gflops >= 1000 else ""
        lines.append(f"| {case} | {short(us)} µs{star}{rate} | {peer} {short(time)} µs | {ratio:.2f} | {run['date']} | {number} |")
    return "\n".join(lines + tail) + "\n"


def with_peers(page):
    return [run for run in page["runs"] if run["rows"][0][4]]


def without_peers(page):
    return [run for run in page["runs"] if not run["rows"][0][4]]


def share(sets, room):
    """At most `room` entries of the sets, as many of each as there is room for, worst first."""
    counts = [0] * len(sets)
    while sum(counts) < room and any(count < len(entries) for count, entries in zip(counts, sets)):
        for i, entries in enumerate(sets):
            if counts[i] < len(entries) and sum(counts) < room:
                counts[i] += 1
    return [entry for entries, count in zip(sets, counts) for entry in entries[:count]]


def plot(page):
    """For each set a line from the worst to the best ratio, a box between the quartiles, a mark at
    the median; on a logarithmic axis from 1/4 to 16."""
    low, high, left, width = -2.0, 4.0, 330, 520

    def x(ratio):
        return left + (min(max(math.log2(ratio), low), high) - low) / (high - low) * width

    runs = sorted(with_peers(page), key=lambda run: workloads(run)[0][0])
    bottom = 40 + 24 * len(runs)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 {bottom + 40}" font-family="sans-serif" font-size="13">',
           f'<rect width="880" height="{bottom + 40}" fill="#fff"/>',
           f'<text x="12" y="20">{html.escape(page["device"])}: speed over that of the fastest peer</text>']
    for power in range(int(low), int(high) + 1):
        at, colour = x(2.0 ** power), "#888" if power == 0 else "#ddd"
        out.append(f'<path d="M{at:.1f} 32V{bottom}" stroke="{colour}"/>')
        out.append(f'<text x="{at:.1f}" y="{bottom + 18}" text-anchor="middle">{2.0 ** power:g}</text>')
    for i, run in enumerate(runs):
        ratios, y = [w[0] for w in workloads(run)], 48 + 24 * i
        quarter = [ratios[(len(ratios) - 1) * k // 4] for k in range(5)]
        out.append(f'<text x="{left - 12}" y="{y + 4}" text-anchor="end">{html.escape(run["title"])}</text>')
        out.append(f'<path d="M{x(quarter[0]):.1f} {y}H{x(quarter[4]):.1f}" stroke="#4477aa"/>')
        out.append(f'<rect x="{x(quarter[1]):.1f}" y="{y - 6}" width="{x(quarter[3]) - x(quarter[1]):.1f}" height="12" fill="#99bbdd"/>')
        out.append(f'<path d="M{x(quarter[2]):.1f} {y - 8}v16" stroke="#114477" stroke-width="3"><title>{quarter[2]:.2f}</title></path>')
    return "\n".join(out + ["</svg>"]) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

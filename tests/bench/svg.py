#!/usr/bin/env python3
"""hal-bench --svg: the plot is XML, and its points are the rows and joined results of the JSON.

usage: svg.py HAL-BENCH
"""
import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"
SIZES = [16, 64, 256]


def bench(program, folder, *options):
    """The rows and the root of the plot of a short run on the cpu."""
    subprocess.run([program, *options, "--device", "cpu", "--seconds", "0.001",
                    "--svg", folder / "p.svg", "--json", folder / "p.json"],
                   check=True, stdout=subprocess.DEVNULL)
    return json.loads((folder / "p.json").read_text())["rows"], xml.parse(folder / "p.svg").getroot()


def texts(root, name):
    return [t.text for t in root.iter(SVG + "text") if t.get("class") == name]


def lines(root):
    """By label, the points of a line as (x, y, size, speed)."""
    found = {}
    for group in root.iter(SVG + "g"):
        label = group.find(SVG + "text").text
        corners = [tuple(map(float, p.split(",")))
                   for p in group.find(SVG + "polyline").get("points").split()]
        circles = group.findall(SVG + "circle")
        assert corners == [(float(c.get("cx")), float(c.get("cy"))) for c in circles], label
        words = [c.find(SVG + "title").text.split() for c in circles]
        found[label] = [(x, y, int(w[0].rstrip(":")), float(w[1]))
                        for (x, y), w in zip(corners, words)]
    return found


def check_places(points):
    """y is proportional to the speed, from the axis up; x grows by the same for the same factor."""
    for x, y, size, speed in points:
        assert 80 <= x <= 640 and 70 <= y <= 400, (x, y)
    (_, y1, _, s1), (_, y2, _, s2) = points[0], points[-1]
    assert abs((400 - y1) * s2 - (400 - y2) * s1) <= 0.1 * (s1 + s2), points
    steps = [b[0] - a[0] for a, b in zip(points, points[1:])]
    assert max(steps) - min(steps) <= 0.2, steps


def main(program):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = ",".join(map(str, reversed(SIZES)))
        rows, root = bench(program, folder, "gemm", "--precision", "strict,normwise",
                           "--sizes", sizes)
        found = lines(root)
        assert set(found) == {"strict", "normwise"}, set(found)
        for label, points in found.items():
            expected = sorted((r["n"], r["gflops"]) for r in rows if r["case"].endswith(label))
            assert [p[2:] for p in points] == expected, (points, expected)
            check_places(points)
        assert texts(root, "x") == [str(s) for s in SIZES], texts(root, "x")
        assert texts(root, "axis") == ["size (logarithmic)", "GFLOP/s"], texts(root, "axis")
        ticks = [float(t) for t in texts(root, "y")]
        assert ticks[0] == 0 and ticks[-1] >= max(r["gflops"] for r in rows) >= ticks[-2], ticks

        # A joined result is a line; its label is text, whatever the characters.
        (folder / "join.json").write_text(json.dumps({"rows": [
            {"case": "dense f32 strict L1 B64 H64", "peer": "a<b&c", "median_us": 1.0}]}))
        rows, root = bench(program, folder, "dense", "--filter", "dense f32 strict L1 B64 H64",
                           "--join", folder / "join.json")
        found = lines(root)
        modes = {"arrays halyard", "graph halyard"}
        stages = {"unfused", "normwise1", "normwise2"}
        assert set(found) == modes | stages | {"a<b&c"}, set(found)
        arrays = next(r for r in rows if r["case"].endswith(", arrays"))
        assert set(arrays["peers"]) == stages | {"a<b&c"}, arrays
        for stage in stages:
            speed = arrays["peers"][stage]["gflops"]
            assert abs(found[stage][0][3] / speed - 1) < 1e-4, (stage, found, arrays)
        flops = 2.0 * 64 ** 3
        assert abs(found["a<b&c"][0][3] / (flops * 1e-3) - 1) < 1e-4, found


if __name__ == "__main__":
    main(sys.argv[1])

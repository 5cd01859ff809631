"""The note about the regret of an even number of products has the mean of the two middle ones, and the
choice is not measured again as its own alternative. usage: median.py HAL-BENCH"""
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile


def measure(*options):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "rows.json"
        subprocess.run([sys.argv[1], "gemm", "--device", "cpu", "--random", "2", "--seed", "3", "--largest", "64",
                        "--regret", "--seconds", "0.001", "--json", path, *options],
                       check=True, stdout=subprocess.DEVNULL)
        return json.loads(path.read_text())


run = measure()
ratios = [row["peers"]["best"]["ratio"] for row in run["rows"]]
note = next(note for note in run["notes"] if note.startswith("Regret"))
told = float(re.search(r"median (-?[0-9.]+)%", note).group(1))
regret = 100 / statistics.median(ratios) - 100
# Ratios in the file and in the note are rounded.
if len(ratios) != 2 or abs(told - regret) > 0.3:
    sys.exit(f"expected a median of {regret:.1f} % of {ratios}, got: {note}")

for row in run["rows"]:
    same = [c for c in row["candidates"] if c["how"].split(";")[0] == row["how"].split(";")[0]]
    if same:
        sys.exit(f"expected no alternative to {row['how']} that is the same, got {same}")
# The cpu has one native kernel, which is the choice.
for row in measure("--impl", "native")["rows"]:
    if "candidates" in row or row["peers"]["best"]["ratio"] != 1:
        sys.exit(f"expected no alternative, got {row}")

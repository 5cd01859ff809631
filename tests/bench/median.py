"""The note about the regret of an even number of products has the mean of the two middle ones.
usage: median.py HAL-BENCH"""
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "rows.json"
    subprocess.run([sys.argv[1], "gemm", "--device", "cpu", "--random", "2", "--seed", "3", "--largest", "64",
                    "--regret", "--seconds", "0.001", "--json", path], check=True, stdout=subprocess.DEVNULL)
    run = json.loads(path.read_text())
ratios = [row["peers"]["best"]["ratio"] for row in run["rows"]]
note = next(note for note in run["notes"] if note.startswith("Regret"))
told = float(re.search(r"median (-?[0-9.]+)%", note).group(1))
regret = 100 / statistics.median(ratios) - 100
# Ratios in the file and in the note are rounded.
if len(ratios) != 2 or abs(told - regret) > 0.3:
    sys.exit(f"expected a median of {regret:.1f} % of {ratios}, got: {note}")

#!/usr/bin/env bash
# Every case of hal-bench sequential runs and is right on the cpu; --join adds peers to the rows of a
# case and its variants alone, and refuses what is no JSON.
# usage: sequential.sh HAL-BENCH
set -euo pipefail
export LC_ALL=C
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
bench=("$1" sequential --device cpu --seconds 0.01 --sizes 1x16,9x40 --json "$folder/rows.json")
cat >"$folder/join.json" <<'JSON'
{"torch": "a \"quoted\" word", "list": [1, [true, null], {"a": -2e3}], "rows": [
 {"case": "step, batch 9, hidden 40", "peer": "other", "median_us": 12.5, "min_us": 11, "runs": 3},
 {"case": "step, batch 9, hidden 4", "peer": "wrong", "median_us": 1, "min_us": 1}]}
JSON

"${bench[@]}" --join "$folder/join.json" | tee "$folder/log"
grep -q 'cpu, fused: all of 10000 operations evaluated' "$folder/log"
grep -q 'cpu, unfused: all of 10000 operations evaluated, in 10000 kernels' "$folder/log"
for row in '10000 unary operations' 'one operation and its 4 KB read back' \
    'step, batch 1, hidden 16, graph of 16' 'random tree, fused'; do
    grep -q "\"case\": \"$row\"" "$folder/rows.json" || { echo "no row '$row'"; exit 1; }
done
joined=$(grep -c '"other": {"median_us": 12.5,' "$folder/rows.json")
[ "$joined" = 4 ] || { echo "$joined rows have the joined peer, 4 are asked for"; exit 1; }
! grep -q '"wrong"' "$folder/rows.json" || { echo "a row of another case was joined"; exit 1; }

echo '{"rows": [{"case": "x", "peer"' >"$folder/join.json"
if "${bench[@]}" --cases alone --join "$folder/join.json" 2>"$folder/error" >"$folder/log"; then
    echo "JSON that breaks off is no error"
    exit 1
fi
grep -q "join.json: expected JSON" "$folder/error"

# Bursts are right whatever the first batch's length.
"$1" batch --device cpu --seconds 0.01 --sizes 3,70 --json "$folder/rows.json"
[ "$(grep -c '"case": "burst of' "$folder/rows.json")" = 2 ] || { echo "bursts are missing"; exit 1; }

#!/bin/bash
# training_ranks.sh BUILD_FOLDER OUT_FOLDER [BACKEND]: data-parallel training on two devices of a
# plugin (cuda): hal-bench dense of two ranks next to one and, where PyTorch is, next to its
# DistributedDataParallel, with sums in the order of the ranks and in any order; the example mlp with
# one and two ranks. Below two minutes on two H100; logs and JSON go to OUT_FOLDER. Exit status: 0 all well.
set -uo pipefail
[ $# -ge 2 ] || { sed -n '2,5s/^# //p' "$0"; exit 2; }
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd) backend=${3:-cuda}
mkdir -p "$2"
out=$(cd "$2" && pwd)
export LC_ALL=C LD_LIBRARY_PATH=$build/lib:${LD_LIBRARY_PATH:-} NCCL_NVLS_ENABLE=0
export HAL_CACHE_DIR=$out/cache
worst=0

# Large and short steps; CELLS has other words of --filter.
cells=(--filter "${CELLS:-L8 B4096 H4096,L8 B512 H1024}")
"$build/bin/hal-bench" dense --ranks 2 "${cells[@]}" --list >"$out/cells.json" || worst=1

join=()
torch_device=$([ "$backend" = cuda ] && echo cuda || echo cpu)
if python3 -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)'; then
    timeout 25 python3 "$source/bench/peers/pytorch/ddp.py" --device "$torch_device" --ranks 2 \
        --cells "$out/cells.json" --json "$out/ddp.json" >"$out/torch.log" 2>&1 || worst=1
    cat "$out/torch.log"
    [ -s "$out/ddp.json" ] && join=(--join "$out/ddp.json")
fi

spread=()
[ "$backend" = cpu ] || spread=(--spread)
# dense TYPE SECONDS [--any-order]
dense() {
    local type=$1 seconds=$2 log=$out/dense-$1${3:+-any}.log
    timeout --foreground -k 5 "$seconds" "$build/bin/hal-bench" dense --device "$backend:0" --ranks 2 \
        "${spread[@]}" ${3:+$3} "${cells[@]}" --type "$type" "${join[@]}" \
        --json "${log%.log}.json" >"$log" 2>&1 || worst=1
    echo "hal-bench dense --ranks 2 ${3:-}"
    cat "$log"
}
dense bf16 24 --any-order # the first one makes the kernels
dense f32 22 --any-order
dense bf16 14
dense f32 22

# loss RANKS: of mlp, from its last line.
loss() {
    timeout 6 "$build/bin/mlp" --data "$source/examples/digits/data" --device "$backend:0" \
        --epochs 3 --ranks "$1" >"$out/mlp-$1.log" 2>&1 || worst=1
    grep '^The ranks\|^All' "$out/mlp-$1.log"
    tail -n 1 "$out/mlp-$1.log"
}
loss 1
loss 2
awk -v one="$(sed -n 's/.*, loss \([^,]*\),.*/\1/p' "$out/mlp-1.log")" \
    -v two="$(sed -n 's/.*, loss \([^,]*\),.*/\1/p' "$out/mlp-2.log")" \
    'BEGIN { d = (one - two) / (one > 0 ? one : 1); exit !(one > 0 && d < 1e-3 && d > -1e-3) }' ||
    { echo "mlp: two ranks have another loss than one"; worst=1; }
rm -rf "$HAL_CACHE_DIR"
exit $worst

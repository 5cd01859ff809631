#!/usr/bin/env bash
# Ranks over MPI: the bits of sums, random collectives, training, and failures of a rank.
# usage: ranks.sh LIBRARY BIN PROGRAM DATA     LIBRARY: openmpi or mpich; exit status 77: no launcher
set -euo pipefail
library=$1 bin=$2 program=$3 data=$4
export LC_ALL=C OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export HAL_COMM_TRANSPORT=mpi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
launcher=mpirun.$library
command -v "$launcher" >/dev/null || launcher=mpirun
"$launcher" --version >"$folder/version" 2>&1 || { echo "skipped: no $launcher"; exit 77; }
case $library in
    openmpi) marks='Open MPI\|OpenRTE' all=(--oversubscribe --bind-to none)
             survive=(--enable-recovery) ;;
    *) marks=HYDRA all=(-bind-to none) survive=(-disable-auto-cleanup) ;;
esac
grep -q "$marks" "$folder/version" || { echo "skipped: $launcher is not that of $library"; exit 77; }

# ranks COUNT [OPTION...] -- COMMAND...
ranks() {
    local count=$1 options=()
    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    timeout -k 1 240 "$launcher" "${all[@]}" "${options[@]}" -n "$count" "$@"
}

stop() {
    echo "$*"
    exit 1
}

for count in 2 3; do
    ranks "$count" -- "$program" sums >"$folder/mpi"
    HAL_COMM_TRANSPORT=shared ranks "$count" -- "$program" sums >"$folder/shared"
    [ "$(sort -u "$folder/mpi" | wc -l)" = 1 ] || stop "the ranks differ: $(cat "$folder/mpi")"
    grep -q "^mpi $count " "$folder/mpi" || stop "not over MPI: $(cat "$folder/mpi")"
    grep -q "^shared $count " "$folder/shared" || stop "not shared: $(cat "$folder/shared")"
    [ "$(sed 's/^mpi //' "$folder/mpi")" = "$(sed 's/^shared //' "$folder/shared")" ] ||
        stop "other bits than by shared memory: $(cat "$folder/mpi" "$folder/shared")"
    echo "sums of $count ranks: the same bits by MPI and by shared memory"
done

ranks 3 -- "$bin/hal-conformance" --device cpu --level comm --filter communicator/launched \
    >"$folder/log" 2>&1 || stop "random collectives: $(cat "$folder/log")"
[ "$(grep -c '1 passed, 0 failed' "$folder/log")" = 3 ] || stop "not three ranks"
ranks 3 -- "$program" many 40 || stop "many groups"
for how in abort disagree leave; do
    ranks 3 -- "$program" "$how" || stop "$how"
done
# A process that ends without leaving, is killed or stays away cannot end MPI in order: the launcher
# is told to let the others go on, and fails. On a busy machine more ranks than one may miss a short
# limit of time.
is_told() {
    ranks 3 "${survive[@]}" -- "$program" "$@" >"$folder/log" 2>&1 || true
    ! grep -q 'expected\|after the failure' "$folder/log"
}
is_told exit || stop "exit: $(cat "$folder/log")"
for how in late kill; do
    is_told "$how" 500 || is_told "$how" 4000 || is_told "$how" 20000 ||
        stop "$how: $(cat "$folder/log")"
done
# A library that the launcher does not know has one rank.
wrong=$([ "$library" = openmpi ] && echo mpich || echo openmpi)
if [ -e "$(dirname "$bin")/lib/halyard/mpi/$wrong.so" ]; then
    HAL_COMM_TRANSPORT=mpi:$wrong ranks 2 -- "$program" solo >"$folder/log" 2>&1 ||
        stop "MPI of another launcher: $(cat "$folder/log")"
    grep -q "use the launcher of that library" "$folder/log" || stop "$(cat "$folder/log")"
fi

loss_of() {
    sed 's/.*"loss":\([-+.0-9e]*\).*/\1/' "$1"
}
"$bin/digits" --data "$data" --device cpu --ranks 2 --json "$folder/threads.json" >/dev/null
ranks 2 -- "$bin/digits" --data "$data" --device cpu --json "$folder/processes.json" \
    >/dev/null 2>&1
[ "$(loss_of "$folder/threads.json")" = "$(loss_of "$folder/processes.json")" ] ||
    stop "training by threads and by processes over MPI differ"
echo "digits: loss $(loss_of "$folder/processes.json") by 2 threads and by 2 processes over MPI"

outcome_of() {
    sed -n 's/^accuracy \(.*\), .*/\1/p' "$1"
}
"$bin/mlp" --data "$data" --device cpu --epochs 2 --ranks 2 >"$folder/threads"
ranks 2 -- "$bin/mlp" --data "$data" --device cpu --epochs 2 >"$folder/processes" 2>/dev/null
[ -n "$(outcome_of "$folder/threads")" ] &&
    [ "$(outcome_of "$folder/threads")" = "$(outcome_of "$folder/processes")" ] ||
    stop "mlp: training by threads and by processes over MPI differ"
echo "mlp: accuracy $(outcome_of "$folder/processes") by both"

#!/bin/bash
# program.sh HAL-CONFORMANCE PLUGINS CHECK-REPORTS: the options of hal-conformance, its exit status
# and its words, with plugins that are right, wrong or rude. Promises 14 and 19: anybody can check a
# driver of his own, by the path of its plugin alone.
set -euo pipefail
export LC_ALL=C
program=$1 plugins=$2 check=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export HAL_CACHE_DIR=$scratch/cache
unset HAL_PLUGIN_PATH HAL_BACKEND HAL_LAYERS
right=$plugins/mock/hal_mock.so wrong=$plugins/wrong/hal_wrong.so

fail() {
    echo "program.sh: $*" >&2
    [ ! -e "$scratch/out" ] || sed 's/^/    /' "$scratch/out" >&2
    exit 1
}

# run STATUS ARGUMENTS...: both outputs are in $scratch/out.
run() {
    local expected=$1 status=0
    shift
    (cd "$scratch" && "$program" "$@") >"$scratch/out" 2>&1 </dev/null || status=$?
    [ "$status" = "$expected" ] || fail "status $status instead of $expected: $*"
}

says() { grep -qF -- "$1" "$scratch/out" || fail "it does not say: $1"; }

# The first device of a file, wherever one stands; what was tested is told.
cp "$right" "$scratch/hal_mock.so"
for path in "$right" ./hal_mock.so hal_mock.so; do
    run 0 --plugin "$path" --filter device/nulls
    says "mock:0: Mock device 0 of mock"
    says "id mock-id-0, driver mock 1.0, plugin mock 1.0"
    says "hal-conformance $("$program" --version | cut -d' ' -f2), library"
    says "seed 1"
done
HAL_PLUGIN_PATH=$plugins/wrong run 0 --plugin "$right" --device wrong --filter device/nulls
run 0 --plugin "$right" --device mock:1 --filter device/nulls
says "mock:1"

# Wrong usage, and what is no plugin.
run 2 --no-such-option
run 2 --jobs 0
says "--jobs: expected a number from 1 to 64, got 0"
run 2 --level core,no
run 2 --plugin "$right" --filter no_such_case
says "no case has this name"
run 2 --plugin no_such.so
says "no_such.so: No such file"
run 1 --plugin "$plugins/no_symbol/hal_no_symbol.so"
says "hal_plugin_create"

# A plugin that is rude before it can be asked anything.
run 1 --plugin "$plugins/rude/hal_hangs.so" --timeout 1
says "no answer for 1 seconds"
run 1 --plugin "$plugins/rude/hal_crashes.so"
says "signal 6"
run 1 --plugin "$plugins/rude/hal_exits.so"
says "something called exit"

# A caller that ignores SIGCHLD, as some supervisors do, takes nothing from what is told of a crash.
run_ignoring() { python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])' "$program" "$@" >"$scratch/out" 2>&1 || true; }
run_ignoring --plugin "$plugins/rude/hal_crashes.so"
says "signal 6"

# A wrong one: the failure is named, made smaller and found again by its name alone.
run 1 --plugin "$wrong" --filter 'gemm(type=f32,m=7,n=9,k=300,ta=1,tb=1,impl=portable'
says "whole numbers"
says "smallest that fails: gemm(type=f32,m=1,n=1,k=1,ta=0,tb=0,impl=portable,seed=1)"
run 1 --plugin "$wrong" --filter 'gemm(type=f32,m=1,n=1,k=1,ta=0,tb=0,impl=portable,seed=5)'
says "seed 5"
run 0 --plugin "$right" --filter 'gemm(type=f32,m=3,n=1,k=11,ta=0,tb=0,impl=portable,seed=1)'
says "1 cases: 1 passed"
run 1 --plugin "$wrong" --shrink 0 --filter 'gemm(type=f32,m=7,n=9,k=300,ta=1,tb=1,impl=portable'
! grep -q smallest "$scratch/out" || fail "it looked for a smaller case"

# In its own process, for a debugger.
run 1 --plugin "$wrong" --in-process --filter 'ir/add*'
says "5 passed, 1 failed"

# Reports, and what changed from the right plugin to the wrong one.
some=(--filter 'ir/add*' --json report.json --junit report.xml --tap report.tap)
run 0 --plugin "$right" "${some[@]}"
cp "$scratch/report.json" "$scratch/earlier.json"
run 1 --plugin "$wrong" "${some[@]}" --compare earlier.json
says "plugin was 'mock' and is 'wrong'"
says "compared: 1 newly failing, 0 newly passing"
python3 "$check" "$scratch"
again=$(sed -n 's/.*"again": "hal-conformance \(.*\)", "contract": "[A-Z0-9, -]*", "group".*/\1/p' "$scratch/report.json" | sed "s/'//g")
[ -n "$again" ] || fail "report.json has no command that repeats the failure"
# shellcheck disable=SC2086 # words, without spaces in them
run 1 $again
run 0 --plugin "$right" "${some[@]}" --compare report.json
says "compared: 0 newly failing, 1 newly passing"
run 2 --plugin "$right" --filter device/nulls --compare report.xml
says "cannot read the earlier report"
(cd "$scratch" && "$program" --plugin "$right" --filter device/nulls --tap - 2>/dev/null) |
    head -n 1 | grep -q "^TAP version" || fail "--tap - does not begin with TAP"

# Known failures: excused with their reason, and complained of when they pass.
echo 'ir/add(type=f32*  sums are off by the lowest bit' >"$scratch/expect.txt"
run 0 --plugin "$wrong" --expect expect.txt --filter 'ir/add*'
says "1 expected failures"
run 1 --plugin "$right" --expect expect.txt --filter 'ir/add*'
says "Take the line out"
echo 'ir/ad(type=f32)  there is no such case' >"$scratch/expect.txt"
run 1 --plugin "$right" --expect expect.txt --filter device/nulls
says "No case fits 'ir/ad(type=f32)'"

# A few that cover all of them are some of the list, in its order; so is a part of these.
"$program" --list --cover >"$scratch/few"
"$program" --list | grep -Fxf "$scratch/few" | cmp - "$scratch/few" || fail "--cover is no part"
[ "$(wc -l <"$scratch/few")" -lt "$("$program" --list --every 3 | wc -l)" ] ||
    fail "--cover gives more than a third"
run 0 --plugin "$right" --cover --filter 'ir/local_id*'
says "3 cases: 3 passed"
"$program" --list --quick | grep -Fxvf <("$program" --list --level core) && fail "--quick is no part"
[ "$("$program" --list --quick | wc -l)" -ge 500 ] || fail "--quick gives less than 500 cases"

# Parts are all of the list, once.
"$program" --list --level core,ops,stress,comm,process | sort >"$scratch/all"
for part in 1 2 3; do
    "$program" --list --level core,ops,stress,comm,process --part $part/3
done | sort | cmp - "$scratch/all" || fail "three parts are not the whole"
[ -z "$(uniq -d "$scratch/all")" ] || fail "two cases have one name: $(uniq -d "$scratch/all")"
[ "$("$program" --list | wc -l)" -ge 2000 ] || fail "there are fewer than 2,000 cases"

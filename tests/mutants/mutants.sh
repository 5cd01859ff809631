#!/bin/bash
# Whether hal-conformance notices deliberately wrong plugins.
#
# mutants.sh short BIN PLUGINS
#   For each mutant of mutants.txt: the case that is said to catch it fails with the mutant under a
#   seed that quick does not use, and under another one where the name of the case has a seed. All of
#   these cases pass with the plugins without a fault, under the first of these seeds.
# mutants.sh quick BIN PLUGINS
#   For each mutant the case fails with it, under one seed.
# mutants.sh whole BIN PLUGINS DIGITS_DATA RESULT.json
#   With and without the fault under three seeds, and with each mutant all cases of core and ops, of
#   which 95 in 100 pass, and the digits demo, which reaches its accuracy; with those that have no
#   fault all cases pass, under three seeds. Writes what came out.
# mutants.sh list BIN
#   Whether there is one case of each name that mutants.txt gives.
# MUTANTS, a regular expression for names, chooses some of them.
# BIN has hal-conformance and digits, PLUGINS the files hal_mutant_NAME.so.
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
seeds=(1 20 333)

# run NAME SEED JSON ARGUMENTS...: hal-conformance with a mutant.
run() {
    local name=$1 seed=$2 json=$3
    shift 3
    "$bin/hal-conformance" --plugin "$plugins/hal_mutant_$name.so" --device "mutant_$name" \
        --seed "$seed" --shrink 0 --json "$json" "$@" >"$json.log" 2>&1 || true
}

# count JSON STATUS: of the summary; nothing where there is no report.
count() {
    local report
    [ -e "$1" ] || return 0
    report=$(<"$1")
    [[ $report =~ \"summary\":\ *\{[^}]*\"$2\":\ *([0-9]+) ]] && echo "${BASH_REMATCH[1]}" || true
}

# Whether one case was run, with this status.
one_case() {
    [ "$(count "$1" "$2")" = 1 ] && [ "$(($(count "$1" passed) + $(count "$1" failed)))" = 1 ]
}

# complain WHAT JSON: to be printed last, where whoever looks at a failed test sees it.
complain() {
    {
        echo "$1"
        tail -n 12 "$2.log" 2>/dev/null | sed 's/^/    /'
    } >>"$folder/complaints"
    return 1
}

# check_caught NAME CASE: the case fails with the mutant, under the first seed.
check_caught() {
    run "$1" "${seeds[0]}" "$folder/$1.json" --filter "$2"
    one_case "$folder/$1.json" failed ||
        complain "$1: not caught by $2, seed ${seeds[0]}" "$folder/$1.json"
}

# check_case NAME WITHOUT CASE: prints the seeds under which the case catches the mutant.
check_case() {
    local name=$1 without=$2 case=$3 seed caught=()
    for seed in "${seeds[@]}"; do
        [ "$form" = whole ] || [ "$seed" != "${seeds[0]}" ] || continue
        [ "$form" = whole ] || [ "$seed" = "${seeds[1]}" ] || [[ "$case" = *seed=* ]] || continue
        run "$name" "$seed" "$folder/$name.json" --filter "$case"
        one_case "$folder/$name.json" failed ||
            complain "$name: not caught by $case, seed $seed" "$folder/$name.json" || return 1
        rm -f "$folder/$name.json"
        caught+=("$seed")
        [ "$form" = whole ] || continue
        run "$without" "$seed" "$folder/$name.without.json" --filter "$case"
        one_case "$folder/$name.without.json" passed ||
            complain "$name: $case does not pass without the fault, seed $seed" \
                "$folder/$name.without.json" || return 1
        rm -f "$folder/$name.without.json"
    done
    echo "$name: caught by $case, seeds ${caught[*]}"
}

# check_without: the cases of all chosen mutants pass with the plugins that have no fault, each of
# which runs its cases in one go.
check_without() {
    local without names status=0
    for without in "${!cases_of[@]}"; do
        run "$without" "${seeds[1]}" "$folder/$without.without.json" --filter "${cases_of[$without]}"
        names=$(tr '|' '\n' <<<"${cases_of[$without]}" | wc -l)
        [ "$(count "$folder/$without.without.json" failed)" = 0 ] &&
            [ "$(count "$folder/$without.without.json" unsupported)" = 0 ] &&
            [ "$(count "$folder/$without.without.json" passed)" -ge "$names" ] ||
            complain "$without, which has no fault: not all of the $names cases pass" \
                "$folder/$without.without.json" || status=1
        echo "$without: $names cases pass without a fault"
    done
    return $status
}

accuracy_of() {
    HAL_PLUGIN_PATH=$plugins/hal_mutant_$1.so HAL_BACKEND=mutant_$1 \
        "$bin/digits" --data "$data" --seeds 5 --json "$folder/$1.digits" >/dev/null 2>&1
    sed 's/.*"test_accuracy":\([0-9.]*\).*/\1/' "$folder/$1.digits"
}

# check_all NAME CASE FAULT: every case and the demo; a line of the result.
check_all() {
    local name=$1 case=$2 fault=$3 json="$folder/$1.all.json" passed failed other accuracy
    run "$name" "${seeds[0]}" "$json" --jobs 2 --timeout 120
    passed=$(count "$json" passed) failed=$(count "$json" failed)
    other=$(count "$json" unsupported)
    [ -n "$failed" ] || complain "$name: no report" "$json" || return 1
    accuracy=$(accuracy_of "$name")
    [ $((failed * 20)) -le $((passed + failed)) ] ||
        complain "$name: $failed of $((passed + failed + other)) cases fail" "$json" || return 1
    awk -v a="$accuracy" 'BEGIN { exit !(a >= 0.968) }' ||
        complain "$name: digits reaches $accuracy" "$json" || return 1
    printf '{"name": "%s", "fault": "%s", "case": "%s", "seeds": [%s], "passed": %d, ' \
        "$name" "$fault" "$case" "$([ "$case" = - ] || (IFS=, && echo "${seeds[*]}"))" \
        "$passed" >"$folder/$name.line"
    printf '"failed": %d, "unsupported": %d, "digits_accuracy": %s}' \
        "$failed" "$other" "$accuracy" >>"$folder/$name.line"
    echo "$name: $passed passed, $failed failed, $other unsupported; digits $accuracy"
}

# Those without a fault: nothing fails, whatever the seed.
check_faultless() {
    local name=$1 seed
    for seed in "${seeds[@]}"; do
        run "$name" "$seed" "$folder/$name.json" --jobs 2 --timeout 120
        [ "$(count "$folder/$name.json" failed)" = 0 ] ||
            complain "$name: it has no fault, and cases fail, seed $seed" "$folder/$name.json" ||
            return 1
    done
    echo "$name: nothing fails, seeds ${seeds[*]}"
}

check_list() {
    local name without case fault wrong=0
    while IFS='|' read -r name without case fault; do
        case=${case# } case=${case% }
        [ "$case" = - ] && continue
        [ "$("$bin/hal-conformance" --list --filter "$case" | wc -l)" = 1 ] || {
            echo "${name% }: hal-conformance has no case, or several, called $case"
            wrong=1
        }
    done < <(grep '^[a-z]' "$here/mutants.txt")
    return $wrong
}

form=$1 bin=$2
if [ "$form" = list ]; then
    check_list
    exit
fi
plugins=$3 data=${4:-} result=${5:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
faults=0 wrong=0 names=()
declare -A cases_of
while IFS='|' read -r name without case fault; do
    name=${name% } without=${without# } case=${case# } case=${case% } fault=${fault# }
    [[ "$name" =~ ^(${MUTANTS:-.*})$ ]] || continue
    names+=("$name")
    if [ "$case" != - ]; then
        faults=$((faults + 1))
        if [ "$form" = quick ]; then
            check_caught "$name" "$case" || wrong=1
            continue
        fi
        without=${without% }
        [[ "|${cases_of[$without]:-}|" = *"|$case|"* ]] ||
            cases_of[$without]=${cases_of[$without]:+${cases_of[$without]}|}$case
        check_case "$name" "$without" "$case" || wrong=1
    elif [ "$form" = whole ]; then
        check_faultless "$name" || wrong=1
    fi
    [ "$form" != whole ] || check_all "$name" "$case" "$fault" || wrong=1
done < <(grep '^[a-z]' "$here/mutants.txt")
[ "$form" != short ] || check_without || wrong=1
[ "$faults" -ge 100 ] || [ -n "${MUTANTS:-}" ] || { echo "only $faults mutants, at least 100 are asked for" && wrong=1; }
if [ "$form" = whole ]; then
    {
        echo '{"mutants": ['
        for name in "${names[@]}"; do
            [ ! -e "$folder/$name.line" ] || cat "$folder/$name.line"
            [ "$name" = "${names[-1]}" ] || echo ,
        done
        echo ']}'
    } >"$result"
fi
echo "$faults mutants"
[ ! -e "$folder/complaints" ] || cat "$folder/complaints"
exit $wrong

#!/bin/bash
# less.sh CONFORMANCE FOLDER ENTRIES [whole]: the cases that call a plugin's entries themselves pass
# without each entry of its extensions in turn; whole: those of the groups that ask for entries too.
# ENTRIES is plugin_entries.h; FOLDER has hal_less.so, and hal_less_mock.so for the entries that the
# cpu plugin inside the first one lacks.
set -euo pipefail
conformance=$1
folder=$2
cases='process/*entr*|hal/words|hal/reserved|leaks/fences|leaks/coherence|leaks/import'
if [ "${4:-}" = whole ]; then
    cases+='|hal/leaks|hal/failures|hal/external|hal/fences|hal/native_queues|hal/reports|hal/coherence'
fi
output=$(mktemp)
trap 'rm -f "$output"' EXIT
tried=0
left=()

# Passes, or says that the plugin inside lacks the entry too.
try() {
    local entry=$1 device=$2
    if TEST_WITHOUT=$entry "$conformance" --plugin "$folder/hal_$device.so" --device "$device" \
        --level core --filter "$cases" > "$output" 2>&1; then
        tried=$((tried + 1))
        return 0
    fi
    if grep -q ', got none' "$output"; then
        return 1
    fi
    cat "$output"
    echo "less.sh: cases fail without $entry"
    exit 1
}

while read -r entry; do
    try "$entry" less || try "$entry" less_mock || left+=("$entry")
done < <(sed -n 's/^ *X([a-z_]*, \([a-z_]*\)) *\\\{0,1\}$/\1/p' "$3")
echo "$tried entries left out in turn; no plugin has ${left[*]:-the rest: none}"
[ "$tried" -ge 28 ]

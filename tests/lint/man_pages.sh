#!/bin/bash
# man_pages.sh DOCS_MAN PROGRAMS...: each program has a man page that groff takes without a warning,
# and that names just the options that the program's --help names. The ctest `lint_man_pages` runs it.
set -euo pipefail
export LC_ALL=C
folder=$1
shift
faults=0
fault() {
    printf '%s\n' "$*"
    faults=$((faults + 1))
}

# The long options in a text, once each; a program's help need not name --help.
options() { { grep -oE -e '--[a-z][a-z-]*' || true; } | grep -vx -e --help | sort -u; }

for program in "$@"; do
    page=$folder/${program##*/}.1
    if [ ! -e "$page" ]; then
        fault "${program##*/} has no man page $page"
        continue
    fi
    differ=$(diff <("$program" --help | options) \
        <(sed -e 's/Fl Fl /--/g' "$page" | grep '^\.It' | options)) ||
        fault "$page and --help name other options (< help, > page): $differ"
    if command -v groff >/dev/null; then
        said=$(groff -mdoc -Tutf8 -ww -z "$page" 2>&1)
        [ -z "$said" ] || fault "$said"
    fi
done
for page in "$folder"/*.7; do
    if command -v groff >/dev/null; then
        said=$(groff -mdoc -Tutf8 -ww -z "$page" 2>&1)
        [ -z "$said" ] || fault "$said"
    fi
done
for page in "$folder"/*.1; do
    name=$(basename "$page" .1)
    [[ " ${*##*/} " == *" $name "* ]] || fault "$page is of no program"
done
echo "man pages: $# programs, $faults faults"
[ "$faults" = 0 ]

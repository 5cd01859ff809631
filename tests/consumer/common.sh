# What the scripts of this folder begin with: an empty folder $work that goes again at the end, no
# variable of Halyard's or of the loader's, and fail. Sourced by them.
set -euo pipefail
export LC_ALL=C
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset HAL_BACKEND HAL_PLUGIN_PATH HAL_LOG HAL_LAYERS LD_LIBRARY_PATH PKG_CONFIG_PATH DESTDIR
export HAL_CACHE_DIR=off

fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# Whether the first text holds the second.
expect() {
    [[ $1 == *"$2"* ]] || fail "expected '$2' in:
$1"
}

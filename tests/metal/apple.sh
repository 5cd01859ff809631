#!/bin/bash
# The plugin's and the kit's sources as a compiler for macOS on Apple silicon reads them, against
# the headers of the stand-in and, in place of Apple's C library, those of glibc for aarch64.
# usage: apple.sh CLANG SOURCE-FOLDER GNUSTEP-INCLUDE OBJC-INCLUDE
set -euo pipefail
clang=$1 root=$2 gnustep=$3 objc=$4
library=/usr/aarch64-linux-gnu/include
[ -d "$library" ] || { echo "skipped: libc6-dev-arm64-cross is not installed"; exit 77; }
# glibc has no issetugid, and its __nonnull is another one than clang's for Apple.
flags=(-target arm64-apple-macos13 -fsyntax-only -std=gnu17 -Wall -Wextra -Werror -fno-blocks
       -Wno-nullability-completeness -U__nonnull "-Dissetugid()=0" -I "$root/plugins/metal"
       -I "$root/plugins" -I "$root/hal/include" -I "$root/tests/metal/framework" -nostdlibinc
       -isystem "$library")
# build_id.c reads headers of object files; docs/metal-first-run.md lists it.
for source in "$root"/plugins/metal/{*,*/*}.c "$root"/plugins/kit/{*,*/*}.c; do
    [ "${source##*/}" != build_id.c ] || continue
    "$clang" "${flags[@]}" -idirafter /usr/include "$source"
done
"$clang" "${flags[@]}" -fno-objc-arc -isystem "$gnustep" -isystem "$objc" \
    "$root/plugins/metal/driver.m"
# A misspelt call is an error.
if sed 's/setFastMathEnabled:NO/setFastMathsEnabled:NO/' "$root/plugins/metal/driver.m" |
    "$clang" "${flags[@]}" -fno-objc-arc -isystem "$gnustep" -isystem "$objc" -x objective-c - \
        2>/dev/null; then
    echo "a call that Metal does not have was not noticed"
    exit 1
fi

#!/usr/bin/env bash
# Moves the debug information and symbols of each PROGRAM into PROGRAM.debug beside it, compressed. Debuggers, and the
# backtrace of a panic, find it there by .gnu_debuglink. A program that has none any more is left as it is.
set -euo pipefail

# binutils of the program's machine
objcopy_of() {
    case $(readelf -h "$1" | sed -n 's/^ *Machine: *//p') in
        AArch64) if [ "$(uname -m)" = aarch64 ]; then echo objcopy; else echo aarch64-linux-gnu-objcopy; fi ;;
        *) echo objcopy ;;
    esac
}

for program in "$@"; do
    # not grep -q: readelf would die of the closed pipe
    [ "$(readelf -SW "$program" | grep -c ' \.debug_line ')" != 0 ] || continue
    (
        cd "$(dirname "$program")"
        name=$(basename "$program")
        objcopy=$(objcopy_of "$name")
        trap 'rm -f "$name.debug.new" "$name.new"' EXIT
        "$objcopy" --only-keep-debug --compress-debug-sections=zlib "$name" "$name.debug.new"
        chmod 644 "$name.debug.new"
        mv "$name.debug.new" "$name.debug"
        # a new file: cargo's own copy is another link to the old one
        "$objcopy" --strip-all --add-gnu-debuglink="$name.debug" "$name" "$name.new"
        mv "$name.new" "$name"
    )
done

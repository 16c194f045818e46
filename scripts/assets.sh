#!/usr/bin/env bash
# Assets of `analyze report` that others made: `assets.sh check` compares them with their sums, `assets.sh fetch` takes them anew from
# the npm package named in analyzer/assets/README.md and then checks. Needs npm and tar to fetch.
set -euo pipefail
cd "$(dirname "$0")/../analyzer/assets"

package=uplot@1.6.32

check() { sha256sum --check --strict SHA256SUMS; }

fetch() {
    local dir
    dir=$(mktemp -d)
    # shellcheck disable=SC2064 # the directory of now
    trap "rm -rf '$dir'" EXIT
    (cd "$dir" && npm pack --silent "$package" >/dev/null && tar -xzf ./*.tgz)
    install -m 644 "$dir/package/dist/uPlot.iife.min.js" "$dir/package/dist/uPlot.min.css" "$dir/package/LICENSE" uplot/
    check
}

case ${1:-check} in
    check) check ;;
    fetch) fetch ;;
    *)
        echo "assets.sh: check or fetch" >&2
        exit 2
        ;;
esac

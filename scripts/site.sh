#!/usr/bin/env bash
# Makes the site in target/site: the pages of docs with a search, the man pages, and the documentation of the crate systape-format.
# It opens from the disk. Ends with a check that no link is broken. `make site` runs this.
set -euo pipefail
cd "$(dirname "$0")/.."
target=${CARGO_TARGET_DIR:-target} bin=${BIN_DIR:-${CARGO_TARGET_DIR:-target}/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp -r docs "$work/docs"
rm -rf "$target/site"
# pages of the root of the repository, whose links are of another place there
mkdir "$work/docs/repository"
for page in CHANGELOG ARCHITECTURE CONTRIBUTING SECURITY; do
    sed -E 's#\]\(docs/#](../#g; s#\]\((CHANGELOG|ARCHITECTURE|CONTRIBUTING|SECURITY)\.md#](\1.md#g' "$page.md" >"$work/docs/repository/$page.md"
done
find "$work/docs" -name '*.md' -path '*/*/*.md' -exec sed -i -E 's#\]\(\.\./\.\./(CHANGELOG|ARCHITECTURE|CONTRIBUTING|SECURITY)\.md#](../repository/\1.md#g' {} +
# links to what is no page lead to the repository
find "$work/docs" -name '*.md' -exec sed -i -E 's#\]\(([./a-z]*/)?schema\)#](https://github.com/systape/systape/tree/main/docs/reference/schema)#g; s#\]\((\.\./)*(LICENSE[^)]*|schemas/[^)]*|testdata/[^)]*)\)#](https://github.com/systape/systape/blob/main/\2)#g' {} +

# mdBook calls README.md of a directory index.html
find "$work/docs" -name '*.md' ! -name SUMMARY.md -exec sed -i -E 's#\]\(([^):]*)README\.md#](\1index.md#g' {} +

mkdir "$work/docs/man"
{
    printf '# Man pages\n\nAfter this page you can read what `man record` and `man analyze-why` print.\n\n'
    pages=(record analyze systape)
    while read -r view; do pages+=("analyze-${view// /-}"); done < <("$bin/analyze" --generate views)
    for page in "${pages[@]}"; do
        case $page in
            analyze-*) program="analyze" view=$("$bin/analyze" --generate views | tr ' ' - | grep -nx -- "${page#analyze-}" | cut -d: -f1) ;;
            *) program=$page view="" ;;
        esac
        # shellcheck disable=SC2046 # a view may be two words
        { printf '# %s(1)\n\n```text\n' "$page"
            "$bin/$program" $([ -z "$view" ] || "$bin/analyze" --generate views | sed -n "${view}p") --generate man | nroff -man -Tutf8 -rLL=100n 2>/dev/null |
                sed -E 's/\x1b\[[0-9;]*m//g' | col -bx
            printf '```\n'; } >"$work/docs/man/$page.md"
        printf -- '- [%s(1)](%s.md)\n' "$page" "$page"
        printf '  - [%s](man/%s.md)\n' "$page" "$page" >&3
    done
} 3>"$work/list" >"$work/docs/man/README.md"
{
    printf '\n- [Man pages](man/README.md)\n'
    cat "$work/list"
    printf '\n# Repository\n\n- [Changes](repository/CHANGELOG.md)\n- [Architecture](repository/ARCHITECTURE.md)\n'
    printf -- '- [Contributing](repository/CONTRIBUTING.md)\n- [Security](repository/SECURITY.md)\n- [The crate systape-format](rustdoc.md)\n'
} >>"$work/docs/SUMMARY.md"
printf '# The crate systape-format\n\nAfter this page you can read tapes with Rust: [its documentation](rustdoc/systape_format/index.html).\n' >"$work/docs/rustdoc.md"

"$target/tools/bin/mdbook" build "$work/docs" --dest-dir "$(realpath -m "$target/site")"
RUSTDOCFLAGS="--cap-lints allow" cargo doc -q --no-deps -p systape-format
cp -r "$target/doc" "$target/site/rustdoc"
rm -f "$target/site/book.toml"
python3 scripts/links.py "$target/site"
printf 'site: file://%s/index.html\n' "$(realpath "$target/site")" >&2

#!/usr/bin/env python3
"""Whether every link of the pages in a directory leads to a file of it, and to a place that is there: `scripts/links.py DIR`. Links to other
hosts are not followed. Pages of rustdoc are only led to."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Links and ids of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links, self.ids, self.loads = [], set(), []
        self.feed(path.read_text(encoding="utf-8", errors="replace"))

    def handle_starttag(self, tag: str, attrs: list) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.ids.add(value)
            if value and (name == "href" or name == "src"):
                self.links.append(value)
                if tag in ("script", "img", "link"):
                    self.loads.append(value)


def main() -> int:
    root = Path(sys.argv[1]).resolve()
    pages = {path: Page(path) for path in root.rglob("*.html") if "rustdoc" not in path.relative_to(root).parts[:1]}
    wrong, looked = [], 0
    for path, page in sorted(pages.items()):
        # the page for what is not found is asked for from any place
        if path.name == "404.html":
            continue
        wrong += [f"{path.relative_to(root)}: loads {load}" for load in page.loads if urlsplit(load).netloc]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            looked += 1
            to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if to.is_dir():
                to = to / "index.html"
            if not to.exists():
                wrong.append(f"{path.relative_to(root)}: {link}: there is no such file")
            elif parts.fragment and to in pages and unquote(parts.fragment) not in pages[to].ids:
                wrong.append(f"{path.relative_to(root)}: {link}: there is no such place")
    print("\n".join(dict.fromkeys(wrong)), file=sys.stderr)
    print(f"links: {len(pages)} pages, {looked} links, {len(wrong)} broken", file=sys.stderr)
    return 1 if wrong or not looked else 0


sys.exit(main())

"""Find what is wrong with built pages: links and pictures that lead nowhere, and requests to other hosts."""

import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

REQUESTED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "object": "data"}
NOT_REQUESTED = {"canonical", "prev", "next", "alternate", "license", "author"}  # relations of <link>
IMPORT = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")


class Page(HTMLParser):
    """The ids of a page, its links, and what a browser requests to show it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.requests: list[str] = []
        self.nameless: list[str] = []
        self.feed(text)
        self.requests += find_imports("".join(re.findall(r"<style.*?</style>", text, re.DOTALL)))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element's id, link and request."""
        values = {name: value or "" for name, value in attrs}
        self.ids |= {values[name] for name in ("id", "name") if name in values}
        if tag in ("a", "area") and "href" in values:
            self.links.append(values["href"])
        if tag == "link" and values.get("rel") not in NOT_REQUESTED:
            self.requests.append(values.get("href", ""))
        if values.get(REQUESTED.get(tag, "")):
            self.requests.append(values[REQUESTED[tag]])
        if tag == "img" and not values.get("alt"):
            self.nameless.append(values.get("src", ""))


def find_imports(style: str) -> list[str]:
    """Return what a style sheet requests."""
    return [url or imported for url, imported in IMPORT.findall(style)]


@cache
def read_page(path: Path) -> Page:
    """Parse a built page, once."""
    return Page(path.read_text("utf-8"))


def find_faults(site: Path) -> list[str]:
    """Return what is wrong with the pages and style sheets of a folder, with their places."""
    read_page.cache_clear()
    faults = [fault for path in sorted(site.rglob("*.html")) for fault in find_page_faults(site, path)]
    for path in sorted(site.rglob("*.css")):
        requests = find_imports(path.read_text("utf-8"))
        faults += [f"{path.relative_to(site)}: {fault}" for fault in check_requests(site, path, requests)]
    return faults


def find_page_faults(site: Path, path: Path) -> Iterator[str]:
    """Yield what is wrong with one page."""
    page = read_page(path)
    place = path.relative_to(site)
    for fault in check_requests(site, path, page.requests):
        yield f"{place}: {fault}"
    for target in page.links:
        if not urlsplit(target).scheme and not urlsplit(target).netloc and not leads_somewhere(site, path, target):
            yield f"{place}: the link {target} leads nowhere"
    for source in page.nameless:
        yield f"{place}: the picture {source} has no text alternative"


def check_requests(site: Path, path: Path, requests: list[str]) -> Iterator[str]:
    """Yield the requests of a file that leave the site or find nothing."""
    for target in requests:
        parts = urlsplit(target)
        if parts.scheme == "data":
            continue
        if parts.scheme or parts.netloc:
            yield f"requests {target} of another host"
        elif not leads_somewhere(site, path, target):
            yield f"{target} is missing"


def leads_somewhere(site: Path, path: Path, target: str) -> bool:
    """Return whether a relative address leads to a file of the site, and its fragment to an element."""
    parts = urlsplit(target)
    start = site if parts.path.startswith("/") else path.parent
    file = (start / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
    file = file / "index.html" if file.is_dir() else file
    if not file.is_file() or not file.is_relative_to(site.resolve()):
        return False
    fragment = unquote(parts.fragment)
    return not fragment or file.suffix != ".html" or fragment in read_page(file).ids

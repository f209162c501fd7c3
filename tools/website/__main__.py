"""Build the site of the docs, and check it.

    python -m tools.website            build into build/site
    python -m tools.website --check    also check pages, links, pictures, requests and accessibility
    python -m tools.website --check --all-pages    open every page in Chromium, not only some; takes minutes
    python -m tools.website --with mkdocs-material   build with Zensical's predecessor, which `uvx` fetches

The check fails if the build has a warning, a page of docs/ is not in the navigation, no page shows a picture, a link or
picture leads nowhere, a page requests anything from another host, or axe-core finds a serious fault in Chromium.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.browser import run_browser
from tools.postgres.builds import MissingRequirement
from tools.website.build import GENERATORS, OUTPUT, build_site, find_unlisted, find_unused_pictures
from tools.website.links import find_faults
from tools.website.serve import serve_folder

LOOKED_AT = ("", "tutorial/", "explanation/how-it-works/", "explanation/comparison/")  # pages that Chromium opens
PAGES_AT_ONCE = 8  # a run of the browser has a limit of time


def list_pages(site: Path) -> list[str]:
    """Return the addresses of all pages of a site, relative to it."""
    return sorted(f"{page.parent.relative_to(site)}/".removeprefix("./") for page in site.rglob("index.html"))


def check_in_browser(site: Path, pages: Sequence[str]) -> list[str]:
    """Return what Chromium and axe-core find on pages, light and dark, wide and narrow."""
    found = []
    with TemporaryDirectory() as folder, serve_folder(site) as url:
        for start in range(0, len(pages), PAGES_AT_ONCE):
            addresses = [f"{url}/{page}" for page in pages[start : start + PAGES_AT_ONCE]]
            found.append(run_browser("site", {"url": url, "pages": addresses}, Path(folder)))
            print(f"opened {start + len(addresses)} of {len(pages)} pages", flush=True)
    return [printed for printed in found if printed]


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the site; with `--check` return 1 if something is wrong with it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="check what was built")
    parser.add_argument("--all-pages", action="store_true", help="open every page in Chromium, not only some")
    parser.add_argument("--with", dest="generator", choices=GENERATORS, default="zensical")
    options = parser.parse_args(arguments)
    warnings = build_site(OUTPUT, options.generator)
    if warnings:
        print(warnings)
        return 1
    faults: list[str] = []
    if options.check:
        try:
            pages = list_pages(OUTPUT) if options.all_pages else LOOKED_AT
            faults = [*find_unlisted(), *find_unused_pictures(), *find_faults(OUTPUT)]
            faults += check_in_browser(OUTPUT, pages)
        except MissingRequirement as missing:
            faults = [str(missing)]
    print(*faults, f"{len(faults)} faults" if options.check else f"built {OUTPUT}", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

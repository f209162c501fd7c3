"""Build the site of the docs, and check it.

    python -m tools.website            build into build/site
    python -m tools.website --check    also check pages, links, pictures, requests and accessibility

The check fails if the build has a warning, a page of docs/ is not in the navigation, a link or picture leads
nowhere, a page requests anything from another host, or axe-core finds a serious fault in Chromium.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.browser import run_browser
from tools.postgres.builds import MissingRequirement
from tools.website.build import OUTPUT, build_site, find_unlisted
from tools.website.links import find_faults
from tools.website.serve import serve_folder

LOOKED_AT = ("", "tutorial/", "explanation/how-it-works/", "explanation/comparison/")  # pages that Chromium opens


def check_in_browser(site: Path) -> list[str]:
    """Return what Chromium and axe-core find on some pages, light and dark, wide and narrow."""
    with TemporaryDirectory() as folder, serve_folder(site) as url:
        scene = {"url": url, "pages": [f"{url}/{page}" for page in LOOKED_AT]}
        printed = run_browser("site", scene, Path(folder))
        return [printed] if printed else []


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the site; with `--check` return 1 if something is wrong with it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="check what was built")
    options = parser.parse_args(arguments)
    warnings = build_site(OUTPUT)
    if warnings:
        print(warnings)
        return 1
    faults: list[str] = []
    if options.check:
        try:
            faults = [*find_unlisted(), *find_faults(OUTPUT), *check_in_browser(OUTPUT)]
        except MissingRequirement as missing:
            faults = [str(missing)]
    print(*faults, f"{len(faults)} faults" if options.check else f"built {OUTPUT}", sep="\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

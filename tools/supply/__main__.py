"""Print what a release is made of and what was checked: `python -m tools.supply [--release] [--sbom FILE]`.

It prints the SBOM in numbers, licences, pins, images and what was audited. With `--release` it fails if a licence is
not allowed, if pins are out of date, if an image has no digest, or if no database of advisories was reached.
"""

import argparse
import sys
from importlib.metadata import version
from pathlib import Path

from packaging.utils import canonicalize_name
from tools.audit import audit, report
from tools.supply.images import check_images
from tools.supply.licences import REASONS, collect_shipped, find_refused
from tools.supply.pins import Pin, check_pins, list_files, list_requirements, read_pins, read_project
from tools.supply.sbom import describe, write_sbom

import waylore


def print_sbom(path: Path, pins: list[Pin]) -> None:
    """Write the SBOM of the pinned packages in this environment, and print its size."""
    path.parent.mkdir(parents=True, exist_ok=True)
    sbom = write_sbom(path, Path(sys.executable), pins, waylore.__version__)
    listed = {canonicalize_name(one["name"]) for one in sbom["components"]}
    print(f"SBOM (CycloneDX {sbom['specVersion']}, {path}): {describe(sbom)}")
    absent = sorted({pin.name for pin in pins} - listed)
    print(f"pinned and not installed here: {', '.join(absent) or 'none'}")


def check_licences() -> list[str]:
    """Print the licences of all packages that any extra brings along; return those that are refused."""
    project = read_project()["project"]
    shipped = collect_shipped(list_requirements(project, project["optional-dependencies"]))
    refused = find_refused(shipped.installed)
    explained = sorted(set(shipped.installed) & set(REASONS))
    print(f"\nlicences: {len(shipped.installed)} packages, {len(refused)} refused, {len(explained)} by name:")
    for name in explained:
        print(f"  {name} {version(name)}: {REASONS[name]}")
    print(f"  not installed here, so not looked at: {', '.join(sorted(shipped.missing)) or 'none'}")
    return [f"licence not allowed: {one}" for one in refused]


def print_pins(files: list[Path]) -> list[str]:
    """Print how many packages each file pins; return what is out of date."""
    print("\npins:")
    for path in files:
        pins = read_pins(path)
        print(f"  {path.name}: {len(pins)} packages, {sum(len(pin.hashes) for pin in pins)} hashes")
    return check_pins()


def check_images_and_advisories(files: list[Path], *, release: bool) -> list[str]:
    """Print what was audited and what was not; return what is wrong."""
    print("\naudited: the pinned packages, against advisories. Not audited: base images, system packages, npm packages")
    weak = report(audit(files), release=release)
    unpinned = list(check_images())
    print(f"\nimages without a digest: {len(unpinned)}")
    return [*unpinned, *([weak] if weak else [])]


def main() -> None:
    """Print everything; fail if something is wrong that a release must not have."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", action="store_true", help="fail if anything is missing")
    parser.add_argument("--sbom", type=Path, default=Path("dist/sbom.cdx.json"), help="the file to write")
    chosen = parser.parse_args()
    files = list(list_files(read_project()))
    print_sbom(chosen.sbom, [pin for path in files for pin in read_pins(path)])
    wrong = check_licences() + print_pins(files) + check_images_and_advisories(files, release=chosen.release)
    if wrong:
        print("\nto mend before a release:" if not chosen.release else "\nthis cannot be released:")
        print("\n".join(f"  {line}" for line in wrong))
    sys.exit(1 if wrong and chosen.release else 0)


if __name__ == "__main__":
    main()

"""Build a release and prove it: `python -m tools.supply.release [--rehearse] [--folder FOLDER]`.

It checks what the release is made of (`python -m tools.supply --release`), builds wheel and source distribution
twice, the second time from a copy with other permissions, and compares their bytes. It installs the wheel into empty
environments whose other packages are pinned by hash, and gets a first answer in each. It writes the SBOMs and
SHA256SUMS, and signs the latter with gpg if WAYLORE_RELEASE_KEY names a key. It publishes nothing. `--rehearse` does
the same without the checks that need a clean checkout, a registry or a database of advisories.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from tools.smoke import find_notes, run
from tools.supply.files import list_files
from tools.supply.pins import FOLDER, RELEASED, read_pins
from tools.supply.sbom import describe, write_sbom

import waylore

ROOT = Path(__file__).parents[2]
PAGE = Path("src/waylore/surfaces/explorer/page")
SUMS = "SHA256SUMS"


def find_unfinished(root: Path) -> list[str]:
    """Return why a checkout cannot be released: changes that are not committed, or no page of the explorer."""
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True, check=True)
    wrong = ["the checkout has changes that are not committed"] if changed.stdout else []
    return wrong if (root / PAGE / "index.html").exists() else [*wrong, "no page of the explorer; run `just explorer`"]


def copy_checkout(root: Path, folder: Path) -> None:
    """Copy the files that git knows and the built page; only their owner may read the copies."""
    listed = list_files(root, "--cached", "--others", "--exclude-standard")
    built = [str(path.relative_to(root)) for path in (root / PAGE).rglob("*") if path.is_file()]
    for name in {*listed, *built}:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, folder / name)
        (folder / name).chmod((root / name).stat().st_mode & 0o700)


def build(root: Path, folder: Path, *, epoch: str) -> dict[str, bytes]:
    """Build wheel and source distribution; return their bytes by name."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def build_twice(root: Path, folder: Path) -> list[Path]:
    """Build the packages into a folder; exit with an error if a second build has other bytes."""
    asked = ["git", "log", "-1", "--format=%ct"]
    epoch = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=True).stdout.strip()
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "copy"
        copy_checkout(root, copy)
        again = build(copy, Path(name) / "dist", epoch=epoch)
    built = build(root, folder, epoch=epoch)
    if different := [name for name in {*built, *again} if built.get(name) != again.get(name)]:
        sys.exit(f"two builds differ: {', '.join(sorted(different))}")
    print(f"two builds are equal: {', '.join(built)}")
    return [folder / name for name in built]


def check_installed(wheel: Path, name: str, folder: Path) -> Path:
    """Install the wheel and a set of pins into an empty environment and search; return the environment's Python."""
    venv.create(folder / "environment", with_pip=True)
    python = folder / "environment" / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "--require-hashes", "--requirement", FOLDER / f"{name}.txt")
    run(*pip, "--no-deps", wheel)
    run(python, "-m", "pip", "check")
    hits = find_notes(python.parent, folder)
    print(f"{name}: {run(python.with_name('waylore'), '--version').strip()}, {hits} hits, all packages as pinned")
    return python


def write_sums(files: list[Path], path: Path) -> None:
    """Write the SHA-256 of each file, as `sha256sum --check` reads it."""
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(files)]
    path.write_text("".join(lines), "utf-8")


def sign(path: Path) -> str:
    """Sign a file with gpg if WAYLORE_RELEASE_KEY names a key; return what was done."""
    key = os.environ.get("WAYLORE_RELEASE_KEY")
    if not key:
        return f"{path.name} is not signed: WAYLORE_RELEASE_KEY names no key of gpg"
    run("gpg", "--batch", "--yes", "--local-user", key, "--armor", "--detach-sign", path)
    return f"{path.name}.asc is signed with {key}"


def main() -> None:
    """Build, prove and sign a release."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rehearse", action="store_true", help="go on where a release would be refused")
    parser.add_argument("--folder", type=Path, default=ROOT / "dist", help="where the files go; it must be empty")
    chosen = parser.parse_args()
    folder = chosen.folder.resolve()
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder} is not empty")
    if unfinished := find_unfinished(ROOT):
        print("\n".join(unfinished))
    with tempfile.TemporaryDirectory() as name:
        checks = ["--sbom", f"{name}/sbom.json", *([] if chosen.rehearse else ["--release"])]
        checked = subprocess.run([sys.executable, "-m", "tools.supply", *checks], check=False, cwd=ROOT)
    if not chosen.rehearse and (unfinished or checked.returncode):
        sys.exit("nothing was built")
    write_release(folder)


def write_release(folder: Path) -> None:
    """Write and check all files of a release."""
    files = build_twice(ROOT, folder)
    [wheel] = [path for path in files if path.suffix == ".whl"]
    for name in RELEASED:
        with tempfile.TemporaryDirectory() as scratch:
            python = check_installed(wheel, name, Path(scratch) / "environment")
            path = folder / f"waylore-{waylore.__version__}-{name}.cdx.json"
            sbom = write_sbom(path, python, read_pins(FOLDER / f"{name}.txt"), waylore.__version__)
            print(f"{path.name}: {describe(sbom)}")
            files.append(path)
    write_sums(files, folder / SUMS)
    print(sign(folder / SUMS))


if __name__ == "__main__":
    main()

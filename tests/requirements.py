"""Find what some tests need and a machine may lack: model weights, sets and folders with questions.

If it is missing, the test is skipped on a contributor's machine and fails in CI.
"""

from pathlib import Path

from tools.models import CACHE, find_damaged_files
from tools.postgres.builds import MissingRequirement

SHARED = Path(__file__).resolve().parents[2] / "shared"
SETS = SHARED / "data"
FOLDERS = SHARED / "folders"


def find_model(name: str) -> Path:
    """Return the folder of a model."""
    directory = CACHE / name
    if find_damaged_files(name, directory):
        raise MissingRequirement(f"{directory} is missing or damaged; run `python tools/models.py {name}`")
    return directory


def find_set(name: str) -> Path:
    """Return the folder of a set of questions."""
    directory = SETS / name
    if not directory.exists():
        raise MissingRequirement(f"{directory} is missing; get the sets of docs/benchmarks.md and put them there")
    return directory


def find_folders() -> Path:
    """Return the directory of folders with questions."""
    if not FOLDERS.exists():
        raise MissingRequirement(f"{FOLDERS} is missing; docs/how-to/evaluate.md describes such a directory")
    return FOLDERS

"""Generate the TypeScript client from the OpenAPI document of the service, and compile it.

    python -m tools.client

No service is started. The document and everything made from it are in `clients/typescript` and not committed.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from tools.postgres.builds import MissingRequirement

from waylore.settings.sections import Settings
from waylore.surfaces.http.app import create_app

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "clients" / "typescript"
LOCK = FOLDER / "package-lock.json"
INSTALLED = FOLDER / "node_modules" / ".package-lock.json"


def run_npm(*arguments: str, folder: Path = FOLDER) -> str:
    """Run npm in a folder and return its output; raise MissingRequirement if there is no npm."""
    npm = shutil.which("npm")
    if npm is None:
        raise MissingRequirement("the TypeScript client needs Node: apt-get install nodejs npm")
    done = subprocess.run([npm, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"npm {' '.join(arguments)} failed: {done.stdout}{done.stderr}")
    return done.stdout


def prepare_folder() -> None:
    """Write the OpenAPI document, and install what the lock file names unless it is installed already."""
    document = create_app(Settings.model_construct()).openapi()
    (FOLDER / "openapi.json").write_text(json.dumps(document, indent=1), "utf-8")
    if not INSTALLED.exists() or INSTALLED.stat().st_mtime < LOCK.stat().st_mtime:
        run_npm("ci", "--no-audit", "--no-fund")


def build_client() -> None:
    """Generate and compile the client."""
    prepare_folder()
    run_npm("run", "build")


def pack_client(folder: Path) -> Path:
    """Generate and compile the client, pack it as it is published, and return the file in the folder."""
    prepare_folder()
    run_npm("pack", "--pack-destination", str(folder))
    [packed] = folder.glob("waylore-*.tgz")
    return packed


if __name__ == "__main__":
    try:
        build_client()
    except (MissingRequirement, RuntimeError) as error:
        sys.exit(str(error))

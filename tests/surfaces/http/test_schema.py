"""schemathesis asks a real service all that its OpenAPI document allows, and much that it does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.postgres import Server

from databases import database
from surfaces.serving import Served, served

HERE = Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "schemathesis.cli", "run"]


def asked(service: Served, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """What schemathesis finds: every check, all of its phases."""
    return subprocess.run(
        [
            *COMMAND,
            f"{service.url}/openapi.json",
            *("--header", f"X-API-Key: {service.token}"),
            *("--checks", "all"),
            *("--no-color", "--continue-on-failure"),
            *("--seed", os.environ.get("SCHEMATHESIS_SEED", "6")),  # another each time, by hand
            *options,
        ],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
            "SCHEMATHESIS_HOOKS": "schemathesis_hooks",
            "NO_PROXY": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


@pytest.mark.timeout(300)
def test_nothing_is_found_on_a_file(tmp_path: Path) -> None:
    with served(tmp_path / "memory.waylore", tmp_path) as service:
        done = asked(service, tmp_path, "--max-examples", "8")
    assert done.returncode == 0, done.stdout[-20_000:]


@pytest.mark.timeout(300)
def test_nothing_is_found_on_postgresql(tmp_path: Path, postgres: Server) -> None:
    with served(database(), tmp_path) as service:
        done = asked(service, tmp_path, "--max-examples", "8")
    assert done.returncode == 0, done.stdout[-20_000:]

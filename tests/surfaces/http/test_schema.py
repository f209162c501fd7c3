"""Test a real service with schemathesis: requests that its OpenAPI document allows, and many that it does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tools.postgres.server import Server

from databases import create_database
from surfaces.serving import Served, start_service

HERE = Path(__file__).parents[1]
COMMAND = [sys.executable, "-m", "schemathesis.cli", "run"]
SAMPLES = [
    pytest.param(["--phases", "examples,fuzzing,stateful", "--max-examples", "1"], id="sample"),
    pytest.param(["--max-examples", "1"], id="all phases", marks=pytest.mark.full),
    pytest.param(["--max-examples", "8"], id="8 examples", marks=pytest.mark.full),
]


def run_schemathesis(service: Served, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run schemathesis with every check."""
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
        timeout=580,
    )


@pytest.mark.timeout(600)  # minutes on a busy machine
@pytest.mark.parametrize("options", SAMPLES)
def test_schemathesis_finds_no_failure_on_sqlite(tmp_path: Path, options: list[str]) -> None:
    with start_service(tmp_path / "memory.waylore", tmp_path) as service:
        done = run_schemathesis(service, tmp_path, *options)
    assert done.returncode == 0, done.stdout[-20_000:]


@pytest.mark.full  # what the service refuses is refused before it asks a store
@pytest.mark.timeout(600)  # minutes on a busy machine
@pytest.mark.parametrize("examples", [1, 8])
def test_schemathesis_finds_no_failure_on_postgres(tmp_path: Path, postgres: Server, examples: int) -> None:
    with start_service(create_database(), tmp_path) as service:
        done = run_schemathesis(service, tmp_path, "--max-examples", str(examples))
    assert done.returncode == 0, done.stdout[-20_000:]

"""Test log lines: text or JSON on stderr, without secrets."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.waiting import HANG_SECONDS

from waylore.surfaces.telemetry.logs import mask_secrets

PROGRAM = """
import logging
from waylore.surfaces.telemetry.logs import bind_request, set_up
set_up({form!r}, {level!r})
set_up({form!r}, {level!r})
text = "what somebody wrote"
with bind_request("r-1"):
    logging.getLogger("waylore").info("told %s", "once")
    try:
        raise ValueError("no")
    except ValueError:
        logging.getLogger("waylore").exception("failed")
"""
WORDS = st.text(st.characters(categories=["L", "N"]), min_size=6, max_size=20)


def run_program(folder: Path, form: str, level: str) -> str:
    program = [sys.executable, "-W", "error", "-c", PROGRAM.format(form=form, level=level)]
    run = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=True, timeout=HANG_SECONDS)
    assert run.stdout == ""
    return run.stderr


def test_json_log_has_one_line_per_event(tmp_path: Path) -> None:
    told, failed = map(json.loads, run_program(tmp_path, "json", "info").splitlines())
    assert (told["event"], told["level"], told["logger"]) == ("told once", "info", "waylore")
    assert told["request_id"] == failed["request_id"] == "r-1"
    assert told["timestamp"].endswith("Z")
    assert "ValueError: no" in failed["exception"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_log_level_filters_and_tracebacks_hide_values(form: str, tmp_path: Path) -> None:
    told = run_program(tmp_path, form, "warning")
    assert "told once" not in told
    assert "ValueError: no" in told
    assert told.count("failed") == 1
    assert "what somebody" not in told
    assert "\x1b" not in told


@given(WORDS, st.sampled_from(["{}", '{{"a": "{}"}}', "see {} and then"]))
def test_secrets_are_masked(secret: str, within: str) -> None:
    for shape in (
        f"postgresql://user:{secret}@host/db",
        f"Authorization: Bearer {secret}",
        f"password={secret}",
        f"api_key: {secret}",
        json.dumps({"token": secret}, ensure_ascii=False),
    ):
        line = within.format(shape)
        assert secret not in mask_secrets(None, "", line) or secret in within or secret in "postgresql host user"

"""The systemd unit, read by systemd itself where that is installed: no unknown words, and it may do little."""

import re
import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from waylore.settings.load import list_settings
from waylore.settings.sections import Settings

UNIT = (Path(__file__).parents[2] / "deploy" / "systemd" / "waylore.service").read_text("utf-8")


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """Write the unit with a program that exists."""
    if not which("systemd-analyze"):
        pytest.skip("no systemd-analyze here")
    written = tmp_path / "waylore.service"
    written.write_text(UNIT.replace("/opt/waylore/bin/waylore", sys.executable))
    return written


def test_systemd_reads_it(unit: Path) -> None:
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert [line for line in done.stderr.splitlines() if "waylore.service" in line] == []


def test_it_may_do_little(unit: Path) -> None:
    asked = ["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    exposure = re.search(r"Overall exposure level for waylore.service: (\d+\.\d)", done.stdout)
    assert exposure, done.stderr
    assert float(exposure[1]) <= 1.5


def test_every_variable_of_ours_is_a_setting() -> None:
    known = {setting.variable for setting in list_settings(Settings.model_construct())}
    credentials = {name.upper() for name in re.findall(r"^LoadCredential=(\w+):", UNIT, re.MULTILINE)}
    assert credentials == {"WAYLORE_STORE"}
    assert credentials | set(re.findall(r"\b(WAYLORE_\w+)=", UNIT)) <= known

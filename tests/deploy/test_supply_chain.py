"""`just audit-supply-chain` prints what a release is made of, and what was and was not looked at."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tools.supply.pins import RELEASED

ROOT = Path(__file__).parents[2]


@pytest.mark.full
@pytest.mark.timeout(900)
def test_audit_prints_sbom_licences_pins_and_what_was_audited(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tools.supply", "--sbom", str(tmp_path / "sbom.json")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    components = json.loads((tmp_path / "sbom.json").read_text())["components"]
    assert re.search(
        rf"^SBOM \(CycloneDX .*\): {len(components)} components, .* with hashes$", done.stdout, re.MULTILINE
    )
    assert all(component["hashes"] for component in components)
    assert re.search(r"^licences: \d+ packages, 0 refused, \d+ by name:$", done.stdout, re.MULTILINE)
    for name in (*RELEASED, "build"):
        assert re.search(rf"^  {name}\.txt: \d+ packages, \d+ hashes$", done.stdout, re.MULTILINE)
    assert "audited: the pinned packages, against advisories. Not audited: base images" in done.stdout
    assert "images without a digest:" in done.stdout

"""The audit reports the vulnerabilities that pip-audit found."""

import pytest
from tools.audit import report

SKIPPED = {"name": "a", "skip_reason": "not found"}
GOOD = {"name": "b", "version": "1", "vulns": []}
WEAK = {"name": "c", "version": "2", "vulns": [{"id": "CVE-1"}, {"id": "CVE-2"}]}


def test_a_weakness_fails_it() -> None:
    assert report([SKIPPED, GOOD, WEAK]) == "known vulnerabilities; upgrade these packages:\nc 2: CVE-1\nc 2: CVE-2"


def test_nothing_audited_is_said_and_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    assert report([SKIPPED]) is None
    assert "nothing was audited" in capsys.readouterr().out
    assert report([SKIPPED, GOOD]) is None
    assert capsys.readouterr().out == "packages audited: 1, not in the database: 1\n"


def test_a_release_must_be_audited() -> None:
    assert report([SKIPPED], release=True) == "no database of advisories has any of the packages: nothing was audited"
    assert report([], release=True) == "no database of advisories has any of the packages: nothing was audited"
    assert report([SKIPPED, GOOD], release=True) is None

"""Secrets in files are found, and what only looks like one is not. The secrets here are put together at run time."""

import pytest
from tools.supply.leaks import find_secrets, load_detectors, read_tracked

DETECTORS = load_detectors()
SECRETS = {
    "AWS Access Key": "AKIA" + "IOSFODNN7" + "EXAMPLQ",
    "GitHub Token": "ghp" + "_" + "a1B2" * 9,
    "Private Key": "-----BEGIN RSA " + "PRIVATE KEY-----",
    "Slack Token": "xox" + "b-123456789012-" + "abcdefABCDEF",
    "Basic Auth Credentials": "postgresql://waylore:" + "x8Kq2" + "@db/waylore",
    "Stripe Access Key": "sk" + "_live_" + "a1B2c3" * 4,
}


@pytest.mark.parametrize(("kind", "secret"), SECRETS.items(), ids=SECRETS)
def test_a_secret_is_found_with_its_line(kind: str, secret: str) -> None:
    assert list(find_secrets(f"first line\nkey = {secret}\nlast line", DETECTORS)) == [(2, kind)]


@pytest.mark.parametrize(
    "text",
    [
        "629fa41c0ffee0ddba11629fa41c0ffee0ddba11",
        "sha256:" + "0123456789abcdef" * 4,
        "postgresql://user:{password}@host/name",
        "postgresql://user:hunter2@host/name",
        "def test_wei" + "ghs_as_often_as_facts_join_it_whichever() -> None:",
        'password = "correct horse battery staple"',
        "127.0.0.1 and 93.184.216.34",
    ],
)
def test_what_looks_like_a_secret_is_left_alone(text: str) -> None:
    assert list(find_secrets(text, DETECTORS)) == []


def test_rules_by_entropy_are_left_out() -> None:
    assert len(DETECTORS) >= 23
    assert not [one for one in DETECTORS if "Entropy" in type(one).__name__]


def test_text_files_are_read_and_binary_ones_are_not() -> None:
    names = {name for name, _ in read_tracked()}
    assert {"README.md", "pyproject.toml", "deploy/compose.yaml"} <= names
    assert not [name for name in names if name.endswith((".png", ".xz", ".gz"))]

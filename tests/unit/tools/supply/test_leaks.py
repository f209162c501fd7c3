"""Secrets in files are found, and what only looks like one is not. The secrets here are made up at run time."""

import pytest
from tools.supply.leaks import find_leaks, read_tracked

from unit.indexing.secrets import samples

SECRETS = [sample for sample in samples.SECRETS if sample[0] not in ("private", "card number")]


@pytest.mark.parametrize(("kind", "before", "secret", "after"), SECRETS, ids=range(len(SECRETS)))
def test_a_secret_that_the_product_leaves_out_is_found_with_its_line(
    kind: str, before: str, secret: str, after: str
) -> None:
    assert list(find_leaks(f"first line\n{before}{secret}{after}\nlast line")) == [(2, kind)]


@pytest.mark.parametrize(
    "text",
    [
        *samples.OTHERS,
        "<private>my diagnosis</private>",
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
    assert list(find_leaks(text)) == []


def test_text_files_are_read_and_binary_ones_are_not() -> None:
    names = {name for name, _ in read_tracked()}
    assert {"README.md", "pyproject.toml", "deploy/compose.yaml"} <= names
    assert not [name for name in names if name.endswith((".png", ".xz", ".gz"))]

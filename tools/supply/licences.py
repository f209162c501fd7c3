"""Compare the licences of the packages that an installation brings along with those that are allowed.

The list is `licences.toml`. It counts what is installed here for any extra; packages for development are not shipped.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from license_expression import ExpressionError, ExpressionParseError, get_spdx_licensing
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LISTED = tomllib.loads(Path(__file__).with_name("licences.toml").read_text("utf-8"))
ALLOWED = frozenset(LISTED["allowed"])
REASONS: Mapping[str, str] = LISTED["packages"]
CLASSIFIER = "License :: "
LICENSING = get_spdx_licensing()


@dataclass(frozen=True)
class Shipped:
    """The packages that an installation brings along, and the names of those that are not installed here."""

    installed: Mapping[str, Distribution]
    missing: frozenset[str]


def collect_shipped(requirements: Iterable[Requirement]) -> Shipped:
    """Follow the requirements of installed packages."""
    installed: dict[str, Distribution] = {}
    missing: set[str] = set()
    seen: set[tuple[str, str]] = set()
    todo = list_extras(requirements)
    while todo:
        name, extra = todo.pop()
        if name in missing or (name, extra) in seen:
            continue
        seen.add((name, extra))
        try:
            package = installed.setdefault(name, installed.get(name) or distribution(name))
        except PackageNotFoundError:
            missing.add(name)
        else:
            todo += list_extras(list_needed(package, extra))
    return Shipped(installed, frozenset(missing))


def list_extras(requirements: Iterable[Requirement]) -> list[tuple[str, str]]:
    """Return the name of each package with each extra that is asked for; without one, the extra is empty."""
    return [(canonicalize_name(one.name), extra) for one in requirements for extra in ("", *one.extras)]


def list_needed(package: Distribution, extra: str) -> list[Requirement]:
    """Return what a package requires on this machine, for one of its extras."""
    declared = map(Requirement, package.requires or [])
    return [one for one in declared if one.marker is None or one.marker.evaluate({"extra": extra})]


def read_licences(package: Distribution) -> list[str]:
    """Return what the metadata names: an SPDX expression, else classifiers, else the free text."""
    expressions, classifiers, texts = (
        package.metadata.get_all(field, []) for field in ("License-Expression", "Classifier", "License")
    )
    named = [line.rpartition(" :: ")[2] for line in classifiers if line.startswith(CLASSIFIER)]
    return expressions or [name for name in named if name != "OSI Approved"] or texts


def is_allowed(licence: str) -> bool:
    """Tell whether a licence is on the list; of an expression, one alternative is enough."""
    if licence in ALLOWED:
        return True
    try:
        return _holds(LICENSING.parse(licence))
    except (ExpressionError, ExpressionParseError):
        return False


def _holds(expression: Any) -> bool:
    parts = getattr(expression, "args", ())
    if isinstance(expression, LICENSING.OR):
        return any(map(_holds, parts))
    if isinstance(expression, LICENSING.AND):
        return all(map(_holds, parts))
    return str(expression) in ALLOWED


def find_refused(packages: Mapping[str, Distribution]) -> list[str]:
    """Return the packages whose licences are neither allowed nor explained."""
    named = {name: read_licences(package) for name, package in packages.items() if name not in REASONS}
    return sorted(
        f"{name}: {', '.join(licences)[:80] or 'no licence in its metadata'}"
        for name, licences in named.items()
        if not licences or not all(map(is_allowed, licences))
    )

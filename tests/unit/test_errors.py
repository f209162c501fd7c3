"""Test errors: the diagram equals the classes, and each default message names a remedy."""

import re

import pytest

from waylore import errors
from waylore.errors import StoreError, WayloreError

CLASSES = [kind for kind in vars(errors).values() if isinstance(kind, type)]
DRAWN = re.compile(r"^(?P<indent>[ │├└─]*)(?P<name>[A-Z]\w+)(?: {2,}\S|$)", re.MULTILINE)


def read_diagram() -> dict[str, str]:
    """Return each class of the diagram in the module's docstring, with its parent."""
    parents: dict[str, str] = {}
    above: list[tuple[int, str]] = [(-1, "Exception")]
    for line in DRAWN.finditer(errors.__doc__ or ""):
        while above[-1][0] >= len(line["indent"]):
            above.pop()
        parents[line["name"]] = above[-1][1]
        above.append((len(line["indent"]), line["name"]))
    return parents


def test_diagram_equals_the_class_hierarchy() -> None:
    assert read_diagram() == {kind.__name__: kind.__mro__[1].__name__ for kind in CLASSES}


@pytest.mark.parametrize("kind", CLASSES)
def test_default_message_is_the_docstring(kind: type[WayloreError]) -> None:
    assert str(kind()) == kind.__dict__["__doc__"]
    assert str(kind("another")) == "another"


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if kind is not WayloreError])
def test_message_names_a_remedy(kind: type[WayloreError]) -> None:
    assert re.search(r"[;:] \w+.*\.$", str(kind()))


def test_errors_have_a_cause() -> None:
    cause = OSError("disk on fire")
    with pytest.raises(StoreError) as raised:
        raise StoreError from cause
    assert raised.value.__cause__ is cause

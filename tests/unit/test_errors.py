"""The errors are those that are drawn, and each says by itself what to do next."""

import re

import pytest

from waylore import errors
from waylore.errors import StoreError, WayloreError

CLASSES = [kind for kind in vars(errors).values() if isinstance(kind, type)]
DRAWN = re.compile(r"^(?P<indent>[ │├└─]*)(?P<name>[A-Z]\w+)(?: {2,}\S|$)", re.MULTILINE)


def drawing() -> dict[str, str]:
    """Each class of the module's docstring, and the one it hangs from."""
    parents: dict[str, str] = {}
    above: list[tuple[int, str]] = [(-1, "Exception")]
    for line in DRAWN.finditer(errors.__doc__ or ""):
        while above[-1][0] >= len(line["indent"]):
            above.pop()
        parents[line["name"]] = above[-1][1]
        above.append((len(line["indent"]), line["name"]))
    return parents


def test_the_drawing_is_the_hierarchy() -> None:
    assert drawing() == {kind.__name__: kind.__mro__[1].__name__ for kind in CLASSES}


@pytest.mark.parametrize("kind", CLASSES)
def test_the_docstring_is_the_default_message(kind: type[WayloreError]) -> None:
    assert str(kind()) == kind.__dict__["__doc__"]
    assert str(kind("another")) == "another"


@pytest.mark.parametrize("kind", [kind for kind in CLASSES if kind is not WayloreError])
def test_the_message_names_a_remedy(kind: type[WayloreError]) -> None:
    assert re.search(r"[;:] \w+.*\.$", str(kind()))


def test_the_cause_is_kept() -> None:
    cause = OSError("disk on fire")
    with pytest.raises(StoreError) as raised:
        raise StoreError from cause
    assert raised.value.__cause__ is cause

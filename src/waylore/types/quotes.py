"""Quote the words that connect two names in a statement, as its author wrote them."""

import re
from functools import lru_cache

MAX_QUOTED_WORDS = 12  # longer quotes lose their middle
_WORD = re.compile(r"\w+")
_EDGES = " \t\r\n,;:—–-|*_`([<"


@lru_cache(maxsize=4_096)
def quote_between(statement: str, one: str, other: str) -> tuple[str, bool]:
    """Return the words of a statement between two names, and whether `one` is first.

    If the statement has only `other`, return the words from its beginning to `other`. Without words between them,
    return "".
    """
    there = _find_name(other, statement)
    if there is None:
        return "", True
    here = _find_name(one, statement) or (0, 0)
    if there[0] < here[1] and here[0] < there[1]:  # one name is a part of the other
        return "", True
    first, second = sorted((here, there))
    return _shorten(statement[first[1] : second[0]]), first == here


def _find_name(name: str, text: str) -> tuple[int, int] | None:
    """Return where a text has a name, in any case and with any spaces and signs between its words."""
    words = _WORD.findall(name)
    pattern = r"(?<!\w)" + r"[\W_]+".join(map(re.escape, words)) + r"(?!\w)"
    found = re.search(pattern, text, re.IGNORECASE) if words else None
    return found.span() if found else None


def _shorten(text: str) -> str:
    words = text.strip(_EDGES).split()
    if not any(map(str.isalnum, "".join(words))):
        return ""
    if len(words) > MAX_QUOTED_WORDS:
        words = [*words[: MAX_QUOTED_WORDS // 2], "…", *words[-(MAX_QUOTED_WORDS // 2) :]]
    return " ".join(words)

"""Report arguments of other programs that are accepted but have no effect in Waylore.

Modules for users of another program take its arguments, so that code runs unchanged. Each argument is reported once for
each object, by an `UnusedArgumentWarning`, which `warnings.filterwarnings("ignore", category=…)` turns off.
"""

import warnings
from collections.abc import Mapping

from waylore.types.knowledge import IndexedDocument

CALLER = 3  # `stacklevel` of the caller of the reporting method


class UnusedArgumentWarning(UserWarning):
    """An argument of another program has no effect in Waylore, or a narrower one."""


class UnusedArguments:
    """The arguments that were already reported, by method and name."""

    def __init__(self) -> None:
        self._reported: set[str] = set()

    def report(self, method: str, arguments: Mapping[str, object], reason: str = "has no effect in Waylore") -> None:
        """Warn about each argument that has a value and was not reported before."""
        for name, value in arguments.items():
            key = f"{method}({name}=)"
            if value is None or value is False or key in self._reported:
                continue
            warnings.warn(f"{key} {reason}", UnusedArgumentWarning, stacklevel=CALLER)
            self._reported.add(key)


def join_passages(indexed: IndexedDocument) -> str:
    """Return the text of a document from its passages, which may overlap at their ends."""
    text, end = "", 0
    for passage in sorted(indexed.passages, key=lambda each: each.start):
        gap = "\n\n" if text and passage.start > end else ""
        text += gap + passage.text[max(0, end - passage.start) :]
        end = max(end, passage.end)
    return text

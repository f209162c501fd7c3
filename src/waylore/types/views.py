"""Results of the views of a memory: the timeline of an entity, the profile of a user, changes, and provenance."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from waylore.dates import format_day
from waylore.fence import to_line
from waylore.text import normalise
from waylore.types.knowledge import Document, Fact, Passage
from waylore.types.plain import dump_document, dump_fact, dump_passage, dump_time
from waylore.types.search import EndKind, to_snippet

MAX_QUOTE = 160  # maximum characters of a turn quoted as a whole; of a longer text only the statement is quoted
ChangeKind = Literal["began", "changed", "corrected", "ended"]
Held = tuple[datetime | None, datetime | None]  # from the first time on, before the second; None if unknown


@dataclass(frozen=True, slots=True)
class Assertion:
    """A fact as one passage states it, with the passage and its document."""

    fact: Fact
    passage: Passage
    document: Document

    @property
    def said(self) -> str:
        """When and by whom it was said, such as `2026-03-01, Mara`; empty if neither is known."""
        return describe_turn(self.passage)

    @property
    def quote(self) -> str:
        """The beginning of the statement, on one line; empty if the passage only repeats the fact."""
        is_short = bool(self.passage.role) and len(self.passage.text) <= MAX_QUOTE
        words = self.passage.text if is_short else self.fact.statement or self.passage.text
        stated = f"{self.fact.subject} {self.fact.predicate} {self.fact.object}"
        return "" if normalise(words).rstrip(".") == normalise(stated) else to_line(to_snippet(words))

    def to_dict(self) -> dict[str, Any]:
        """Return the assertion as plain values, as every surface writes it in JSON."""
        return {
            "fact": dump_fact(self.fact),
            "passage": dump_passage(self.passage),
            "session": self.document.session,
        }


@dataclass(frozen=True, slots=True)
class AssertionEnd:
    """How and when a fact ended, and the assertion that ended it; None if it ended at its stated time."""

    kind: EndKind
    at: datetime
    by: Assertion | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the end as plain values, as every surface writes it in JSON."""
        return {"kind": self.kind, "at": dump_time(self.at), "by": self.by.to_dict() if self.by else None}


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """An assertion with the periods in which it held: none if it never held, several if it held again later.

    `end` is the end of the last period. `is_planned` if it begins later than now.
    """

    assertion: Assertion
    periods: tuple[Held, ...]
    end: AssertionEnd | None = None
    is_planned: bool = False

    def __str__(self) -> str:
        end = f"{self.end.kind} {format_day(self.end.at)}" if self.end else ""
        state = ", ".join(filter(None, ("planned" if self.is_planned else "", end)))
        return f"{self.describe_periods()}: {self.assertion.fact}{f' ({state})' if state else ''}"

    def describe_periods(self) -> str:
        """Return the periods in which it held, such as `2026-01-10 to 2026-03-10` or `since 2026-06-10`."""
        return ", ".join(_describe_period(*period) for period in self.periods) or "never held"

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain values, as every surface writes it in JSON."""
        return {
            **self.assertion.to_dict(),
            "periods": [{"start": dump_time(start), "end": dump_time(end)} for start, end in self.periods],
            "end": self.end.to_dict() if self.end else None,
            "is_planned": self.is_planned,
        }


@dataclass(frozen=True, slots=True)
class Timeline:
    """The assertions of an entity in order of time. `has_more` if older ones were left out."""

    entity: str
    entries: tuple[TimelineEntry, ...] = ()
    has_more: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the timeline as plain values, as every surface writes it in JSON."""
        return {
            "entity": self.entity,
            "entries": [entry.to_dict() for entry in self.entries],
            "has_more": self.has_more,
        }


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """A fact that began, changed, was corrected or ended, and when.

    `before` is the assertion that ended, None if a fact began; `after` is the assertion that began, or that denies the
    fact. A correction has the time at which it was said.
    """

    kind: ChangeKind
    at: datetime
    before: Assertion | None = None
    after: Assertion | None = None

    def __str__(self) -> str:
        return f"{format_day(self.at)} {self.kind}: {self.describe_facts()}"

    def describe_facts(self) -> str:
        """Return the fact that began or ended, or the old and the new one: `Mara —lives_in→ Oslo, now Bergen`."""
        said = self.before or self.after
        is_replaced = self.kind in ("changed", "corrected") and self.before and self.after
        return f"{said.fact if said else ''}{f', now {self.after.fact.object}' if is_replaced and self.after else ''}"

    def to_dict(self) -> dict[str, Any]:
        """Return the change as plain values, as every surface writes it in JSON."""
        before, after = (each.to_dict() if each else None for each in (self.before, self.after))
        return {"kind": self.kind, "at": dump_time(self.at), "before": before, "after": after}


@dataclass(frozen=True, slots=True)
class ChangeList:
    """Changes in order of time. `has_more` if older ones were left out."""

    changes: tuple[MemoryChange, ...] = ()
    has_more: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the changes as plain values, as every surface writes them in JSON."""
        return {"changes": [change.to_dict() for change in self.changes], "has_more": self.has_more}


@dataclass(frozen=True, slots=True)
class ProfileLine:
    """The current assertion of one relation, or several, newest first, if the relation has several objects."""

    assertions: tuple[Assertion, ...]
    text: str

    def to_dict(self) -> dict[str, Any]:
        """Return the line as plain values, as every surface writes it in JSON."""
        return {"text": self.text, "assertions": [each.to_dict() for each in self.assertions]}


@dataclass(frozen=True, slots=True)
class Profile:
    """The current facts about a user, one line for each relation. `has_more` if lines did not fit into the budget."""

    user: str
    lines: tuple[ProfileLine, ...] = ()
    has_more: bool = False

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(line.text for line in self.lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as plain values, as every surface writes it in JSON."""
        return {"user": self.user, "lines": [line.to_dict() for line in self.lines], "has_more": self.has_more}


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a passage comes from: its document, and the turns or passages before and after it, in their order."""

    passage: Passage
    document: Document
    before: tuple[Passage, ...] = ()
    after: tuple[Passage, ...] = ()

    @property
    def speaker(self) -> str:
        """The speaker; empty if the passage is not a turn."""
        return self.passage.speaker

    @property
    def session(self) -> str:
        """The session in which it was said; empty if there was none."""
        return self.document.session

    @property
    def at(self) -> datetime | None:
        """The time at which it was said, or of the event of its document; None if unknown."""
        return self.passage.at or self.document.at

    def __iter__(self) -> Iterator[Passage]:
        return iter((*self.before, self.passage, *self.after))

    def to_dict(self) -> dict[str, Any]:
        """Return the provenance as plain values, as every surface writes it in JSON."""
        return {
            "speaker": self.speaker,
            "session": self.session,
            "at": dump_time(self.at),
            "passage": dump_passage(self.passage),
            "document": dump_document(self.document),
            "before": [dump_passage(passage) for passage in self.before],
            "after": [dump_passage(passage) for passage in self.after],
        }


def _describe_period(start: datetime | None, end: datetime | None) -> str:
    if start is None:
        return f"until {format_day(end)}" if end else "undated"
    return f"{format_day(start)} to {format_day(end)}" if end else f"since {format_day(start)}"


def describe_turn(passage: Passage) -> str:
    """Return the day and the speaker of a passage, such as `2026-03-01, Mara`; empty if neither is known."""
    day = format_day(passage.at) if passage.at else ""
    return ", ".join(filter(None, (day, passage.speaker)))

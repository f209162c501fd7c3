"""Build the answers of the tools that show a profile, changes and the turns around a passage: lines in one fence.

A line has the fact with its time, the quote with its speaker and day, and the mark of the passage, for `memory_get`.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from pydantic import Field

from waylore.dates import format_day
from waylore.fence import RECALLED_NOTE, Fence, to_line
from waylore.surfaces.tools.answers import TEXT_DESCRIPTION, ToolAnswer
from waylore.types.identity import make_mark
from waylore.types.knowledge import Passage
from waylore.types.views import Assertion, ChangeList, Profile, Timeline, describe_turn

MORE = "There are older ones; narrow the time, or name an entity."


class ProfileAnswer(ToolAnswer):
    """The current facts about the user, one line for each relation, the most used first."""

    user: str
    text: str = Field(description=TEXT_DESCRIPTION)
    left_out: str = Field(description="what did not fit into max_tokens")

    def to_text(self) -> str:
        """Return the lines under a heading."""
        if not self.text:
            return self.left_out or f"No facts about {self.user}."
        return "\n\n".join(
            filter(None, [f"Current facts about {self.user}. {RECALLED_NOTE}", self.text, self.left_out])
        )


class ChangesAnswer(ToolAnswer):
    """The changes in a period, or all statements about an entity, in order of time."""

    since: datetime | None = Field(description="the time that was asked for; null if it has no beginning")
    until: datetime | None = Field(description="its end, which is not part of it; null if it is now")
    text: str = Field(description=TEXT_DESCRIPTION)
    left_out: str = Field(description="what did not fit into max_tokens, or was not read")

    def to_text(self) -> str:
        """Return the lines under the requested period."""
        since = f" from {format_day(self.since)}" if self.since else ""
        until = f" before {format_day(self.until)}" if self.until else ""
        head = f"In order of time{since}{until}." if self.text else f"Nothing changed{since}{until}."
        return "\n\n".join(filter(None, [f"{head} {RECALLED_NOTE}" if self.text else head, self.text, self.left_out]))


def make_profile_answer(profile: Profile, fence: Fence, lines: int) -> ProfileAnswer:
    """Return an answer with the first `lines` lines of a profile."""
    shown = list_lines(profile)[:lines]
    has_more = profile.has_more or lines < len(profile.lines)
    left_out = "Left out: what did not fit; raise max_tokens, or use memory_search." if has_more else ""
    return ProfileAnswer(user=to_line(profile.user), text=fence.enclose("\n".join(shown)), left_out=left_out)


def make_changes_answer(
    view: ChangeList | Timeline, since: datetime | None, until: datetime | None, fence: Fence, items: int
) -> ChangesAnswer:
    """Return an answer with the newest `items` of a view."""
    lines = list_lines(view)
    shown = lines[len(lines) - items :]
    left_out = f"Left out: {len(lines) - items} older ones; raise max_tokens." if items < len(lines) else ""
    text = fence.enclose("\n".join(shown))
    return ChangesAnswer(since=since, until=until, text=text, left_out=left_out or (MORE if view.has_more else ""))


def list_lines(view: Profile | ChangeList | Timeline) -> list[str]:
    """Return a view as lines."""
    if isinstance(view, Profile):
        return [f"- {line.text} (passage {make_mark(line.assertions[0].passage.id)})" for line in view.lines]
    if isinstance(view, Timeline):
        return [f"- {to_line(str(entry))}{_describe_said([entry.assertion])}" for entry in view.entries]
    return [
        f"- {to_line(str(change))}{_describe_said([each for each in (change.before, change.after) if each])}"
        for change in view.changes
    ]


def list_turns(passages: Iterable[Passage]) -> Iterator[str]:
    """Yield turns as lines, each with its time and speaker before its text."""
    return (to_line(f"{describe_turn(passage)}: {passage.text}".removeprefix(": ")) for passage in passages)


def _describe_said(said: Sequence[Assertion]) -> str:
    return "".join(f"; said {_describe_words(each)} (passage {make_mark(each.passage.id)})" for each in said)


def _describe_words(said: Assertion) -> str:
    return " ".join(filter(None, (to_line(said.said), f"“{said.quote}”" if said.quote else "")))

"""Render a profile, changes and a timeline for people at a terminal.

Texts come from other people, so control and invisible characters are removed before they reach the terminal.
"""

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from waylore.dates import format_day
from waylore.fence import to_line
from waylore.surfaces.terminal.hits import ARROW, DIM, NAME
from waylore.types.knowledge import Fact
from waylore.types.views import Assertion, ChangeList, MemoryChange, Profile, Timeline, TimelineEntry

STYLES = {"began": "green", "changed": "yellow", "corrected": "yellow", "ended": "red", "planned": "blue"}
MORE = "There is more; --limit and --max-tokens show it."


def render_profile(profile: Profile) -> RenderableType:
    """Render the current facts about a user: each relation with its objects, its beginning, and a quote."""
    if not profile.lines:
        return f"no facts about {to_line(profile.user)!r}" if not profile.has_more else MORE
    table = _make_table()
    for line in profile.lines:
        for each in line.assertions:
            since = each.fact.valid_from or each.fact.at
            day = f"since {format_day(since)}" if since else ""
            table.add_row(Text(day, DIM), Group(_render_fact(each.fact), *_render_words(each, profile.user)))
    return Group(table, *_render_more(profile.has_more))


def render_changes(found: ChangeList) -> RenderableType:
    """Render changes: day and kind, the fact with its replacement, and a quote."""
    if not found.changes:
        return "nothing changed"
    table = _make_table()
    for change in found.changes:
        day = Text.assemble((f"{format_day(change.at)} ", DIM), (change.kind, STYLES[change.kind]))
        table.add_row(day, Group(*_render_change(change)))
    return Group(table, *_render_more(found.has_more))


def render_timeline(timeline: Timeline) -> RenderableType:
    """Render the assertions of an entity: the period of each, the fact, a quote, and its end."""
    if not timeline.entries:
        return f"no statements about {to_line(timeline.entity)!r}; `waylore search` finds passages that name it"
    table = _make_table()
    for entry in timeline.entries:
        table.add_row(Text(entry.describe_periods().replace(", ", "\n"), DIM), Group(*_render_entry(entry)))
    return Group(table, *_render_more(timeline.has_more))


def _make_table() -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    return table


def _render_change(change: MemoryChange) -> Iterable[RenderableType]:
    said = [each for each in (change.before, change.after) if each]
    fact = _render_fact(said[0].fact)
    if change.before and change.after and change.kind in ("changed", "corrected"):
        fact.append(", now ").append(to_line(change.after.fact.object), NAME)
    yield fact
    for each in said:
        yield from _render_words(each)


def _render_entry(entry: TimelineEntry) -> Iterable[RenderableType]:
    fact = _render_fact(entry.assertion.fact)
    if entry.is_planned:
        fact.append(" planned", STYLES["planned"])
    yield fact
    yield from _render_words(entry.assertion)
    if entry.end:
        words = f": {to_line(entry.end.by.quote or entry.end.by.passage.text)}" if entry.end.by else ""
        yield Text.assemble((f"{entry.end.kind} {format_day(entry.end.at)}", STYLES[entry.end.kind]), (words, DIM))


def _render_fact(fact: Fact) -> Text:
    return Text.assemble(
        (to_line(fact.subject), NAME), (f" {to_line(fact.draw_arrow())} ", ARROW), (to_line(fact.object), NAME)
    )


def _render_words(said: Assertion, known: str = "") -> Iterable[Text]:
    """Yield the quote with its day and speaker, unless the passage only repeats the fact."""
    if said.quote:
        speaker = "" if said.passage.speaker == known else to_line(said.said)
        yield Text(f"“{said.quote}”{f' {speaker}' if speaker else ''}", DIM)


def _render_more(has_more: bool) -> Iterable[Text]:
    return [Text(MORE, DIM)] if has_more else []

"""Render hits, explanations and graphs for people at a terminal.

Pure functions that return objects of rich; 80 columns are enough. Texts come from other people, so control and
invisible characters in them are removed before they reach the terminal.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from waylore.dates import format_day
from waylore.fence import to_line
from waylore.recipes import RECIPES
from waylore.surfaces.terminal.tables import make_table
from waylore.text import terms
from waylore.types.knowledge import Document, Entity, Fact
from waylore.types.results import describe_left_out
from waylore.types.search import GraphPath, Hit, Placement, SearchResult, Superseder, to_snippet

SNIPPET_CHARACTERS = 220  # characters of a passage in a card
ADDRESS_CHARACTERS = 32  # characters of an address in a card
MAX_SEARCHED_CHARACTERS = 20_000  # characters of a passage from which the snippet is chosen
BAR_WIDTH = 10
MAX_SET_LINES = 12  # lines of a set that the question asks for
MAX_OTHERS = 3  # documents with the same text that a card names
NAME, DIM, ARROW, HIT = "bold", "dim", "cyan", "bold yellow"
STAGES = (
    *("embedding", "embed parts", "unit", "vector", "keyword", "link", "graph", "part", "scores"),
    *("hits", "set", "reranker"),
)
_WORD = re.compile(r"\w+")


def count(number: int, noun: str) -> str:
    """Return a number with its noun, in the singular or plural."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def describe_secrets(left_out: Mapping[str, int]) -> str:
    """Describe the secrets left out of added texts, as the end of a sentence."""
    return f"; left out: {describe_left_out(left_out)}" if left_out else ""


# -- hits ----------------------------------------------------------------------------------------------


def render_result(result: SearchResult, seconds: float, *, explained: bool = False) -> RenderableType:
    """Render the hits as cards, best first, and a footer."""
    cards: list[RenderableType] = [*render_set(result)]
    for rank, hit in enumerate(result.hits, 1):
        cards += [render_card(rank, hit, result.query), *([_indent(render_reasons(hit))] if explained else []), Text()]
    return Group(*cards, *render_footer(result, seconds))


def render_set(result: SearchResult) -> Iterator[RenderableType]:
    """Yield the set that the question asks for, if the graph states one: its summary and its first lines."""
    if result.set_answer is None:
        return
    lines = result.set_answer.lines
    yield Text(result.set_answer.summary, NAME)
    yield from (_indent(Text(line, overflow="ellipsis", no_wrap=True)) for line in lines[:MAX_SET_LINES])
    if len(lines) > MAX_SET_LINES:
        yield _indent(Text(f"… and {count(len(lines) - MAX_SET_LINES, 'line')}: waylore related shows all", DIM))
    yield Text()


def render_card(rank: int, hit: Hit, question: str) -> RenderableType:
    """Render a hit in a few lines: rank, title and score, a snippet, the path."""
    head = Table.grid(expand=True, padding=(0, 1))
    head.add_column(width=2, justify="right", style="bold green")
    head.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    head.add_column(justify="right", no_wrap=True, overflow="ellipsis", max_width=38)
    head.add_row(str(rank), Text(make_title(hit), NAME), _render_place(hit))
    lines: list[RenderableType] = [render_snippet(_drop_headings(hit), question)]
    if hit.path:
        lines.append(Text.assemble(("via ", DIM), render_path(hit.path)))
    if hit.superseded_by:
        lines.append(_render_superseder(hit.superseded_by))
    if hit.also_in:
        lines.append(_render_others(hit.also_in))
    return Group(head, _indent(Group(*lines)))


def _render_superseder(superseder: Superseder) -> Text:
    """Render the passage that supersedes a hit."""
    since = f"{superseder.kind} on {format_day(superseder.since)}: "
    return Text.assemble((since, "yellow"), (to_line(to_snippet(superseder.text)), DIM))


def _render_others(documents: Sequence[Document]) -> Text:
    """Render the other documents with the same text: the first few by name, the rest as a number."""
    names = [to_line(document.title or document.uri) for document in documents[:MAX_OTHERS]]
    rest = len(documents) - len(names)
    return Text(f"also in {', '.join(names)}{f' and {rest} more' if rest else ''}", DIM)


def _drop_headings(hit: Hit) -> str:
    """Return the text of a passage without the headings at its beginning, which the card shows."""
    named = {to_line(name) for name in (*hit.passage.headings, hit.passage.title, hit.document.title)}
    lines = hit.passage.text.splitlines()
    while len(lines) > 1 and to_line(lines[0]).lstrip("# ") in named | {""}:
        lines = lines[1:]
    return "\n".join(lines)


def make_title(hit: Hit) -> str:
    """Return the title and headings of a hit, else its address, else its first words."""
    title = hit.passage.title or hit.document.title
    headings = [name for name in hit.passage.headings if name != title]
    named = " › ".join(filter(None, [title, *headings])) or hit.said or hit.document.uri
    return to_line(named) or to_line(hit.passage.text[:60])


def _render_place(hit: Hit) -> Text:
    address = "" if make_title(hit) == to_line(hit.document.uri) else _shorten(to_line(hit.document.uri))
    if hit.said and make_title(hit) != to_line(hit.said):
        address = f"{address} {to_line(hit.said)}".strip()
    return Text.assemble((f"{address} " if address else "", DIM), (f"{hit.score:.3f}", "green"))


def _shorten(address: str) -> str:
    """Return the end of a long address, if possible from a slash on."""
    if len(address) <= ADDRESS_CHARACTERS:
        return address
    end = address[1 - ADDRESS_CHARACTERS :]
    return f"…{end[max(end.find('/'), 0) :]}"


def render_snippet(text: str, question: str) -> Text:
    """Render the part of a passage with the most words of the question, and highlight these words."""
    wanted = frozenset(terms(question))
    shown = Text(_choose_part(to_line(text[:MAX_SEARCHED_CHARACTERS]), wanted))
    for word in _WORD.finditer(shown.plain):
        if not wanted.isdisjoint(terms(word.group())):
            shown.stylize(HIT, *word.span())
    return shown


def _choose_part(text: str, wanted: frozenset[str]) -> str:
    """Return the part of a text that has the most terms of the question."""
    if len(text) <= SNIPPET_CHARACTERS:
        return text
    found = [(word.start(), frozenset(terms(word.group())) & wanted) for word in _WORD.finditer(text)]
    places = [start for start, said in found if said]
    start = max(places, key=lambda at: (_count_terms(found, at), -at), default=0)
    begin = text.rfind(" ", 0, max(0, start - 30)) + 1
    end = text.rfind(" ", begin, begin + SNIPPET_CHARACTERS) if len(text) > begin + SNIPPET_CHARACTERS else len(text)
    return f"{'… ' if begin else ''}{text[begin:end]}{' …' if end < len(text) else ''}"


def _count_terms(found: Sequence[tuple[int, frozenset[str]]], at: int) -> int:
    return len({term for start, said in found for term in said if at <= start < at + SNIPPET_CHARACTERS - 40})


def render_path(way: GraphPath) -> Text:
    """Render the facts that led to a passage as one line."""
    steps = [render_step(step.fact, is_forward=step.is_forward) for step in way.steps]
    return Text(" ").join([Text.assemble((to_line(way.start), NAME)), *steps])


def render_step(fact: Fact, *, is_forward: bool) -> Text:
    """Render a fact as a step: the relation as an arrow, then the entity at its other end."""
    arrow = to_line(fact.draw_arrow(is_forward=is_forward))
    other = fact.object if is_forward else fact.subject
    return Text.assemble((f"{arrow} ", ARROW), (to_line(other), NAME if fact.object_id else "italic"))


def render_footer(result: SearchResult, seconds: float) -> Iterator[Text]:
    """Yield lines about the run of the search, and about searches that could not run."""
    hits = count(len(result.hits), "hit") if result.hits else "nothing found"
    yield Text(" · ".join([hits, result.route_reason or result.recipe, f"{seconds * 1000:.0f} ms"]), DIM)
    for span in result.spans:
        yield Text(f"nearer first: {to_line(str(span))}", DIM)
    recipe = RECIPES.get(result.recipe)
    if result.skip_reason and (recipe is None or recipe.graph):
        yield Text(f"the graph was skipped: {to_line(result.skip_reason)}", DIM)
    if result.is_relevant is False and result.hits:
        yield Text(f"there is probably no answer here: {to_line(result.relevance_reason)}", "yellow")
    for what in result.missing:
        yield _render_missing(what)


def _render_missing(what: str) -> Text:
    search, _, reason = to_line(what).partition(": ")
    return Text(f"not searched: {search}: {reason}", "yellow dim")


# -- why -----------------------------------------------------------------------------------------------


def render_reasons(hit: Hit) -> RenderableType:
    """Render the searches that found a hit and the facts of its path, as a tree."""
    tree = Tree(Text(f"{hit.score:.4f} in total", DIM), guide_style=DIM)
    for placement in hit.placements:
        tree.add(_render_placement(placement, hit.score))
    if hit.path and hit.path.steps:
        _add_facts(tree.add(Text("path", DIM)), hit.path)
    return tree


def _render_placement(placement: Placement, score: float) -> Text:
    part = placement.share / score if score else 0.0
    full = round(BAR_WIDTH * min(max(part, 0.0), 1.0))
    return Text.assemble(
        f"{placement.search:8}",
        ("█" * full, "green"),
        ("░" * (BAR_WIDTH - full), DIM),
        f" {part:4.0%}  ",
        (to_line(placement.text), DIM),
    )


def _add_facts(tree: Tree, way: GraphPath) -> None:
    for step in way.steps:
        start = step.fact.subject if step.is_forward else step.fact.object
        arrow = render_step(step.fact, is_forward=step.is_forward)
        branch = tree.add(Text.assemble((f"{to_line(start)} ", NAME), arrow, (f"  {_describe_fact(step.fact)}", DIM)))
        if step.fact.statement:
            branch.add(Text(f"“{to_line(step.fact.statement)}”", "italic"))


def _describe_fact(fact: Fact) -> str:
    status = "" if fact.status == "confirmed" else fact.status
    parts = [f"confidence {fact.confidence:.2f}", f"weight {fact.weight:g}", fact.source, status, format_period(fact)]
    return " · ".join(filter(None, parts))


def format_period(fact: Fact) -> str:
    """Return the period of a fact, if it is known."""
    begin, end = (format_day(day) if day else "" for day in (fact.valid_from, fact.valid_to))
    if begin and end:
        return f"{begin} to {end}"
    return f"since {begin}" if begin else f"until {end}" if end else ""


def render_explanation(result: SearchResult, rank: int, seconds: float) -> RenderableType:
    """Render why a hit has its rank: its rank in each search, the path, the gate, and the times."""
    hit = result.hits[rank - 1]
    tree = Tree(Text("explanation", "bold"), guide_style=DIM)
    scores = tree.add(Text(f"score  {hit.score:.4f}"))
    for placement in hit.placements:
        scores.add(_render_placement(placement, hit.score))
    if hit.path:
        label = Text("path") if hit.path.steps else Text.assemble("path   ", render_path(hit.path))
        _add_facts(tree.add(label), hit.path)
    tree.add(_render_gate(result))
    tree.add(Text(f"method {result.route_reason or result.recipe}"))
    _add_times(tree.add(Text(f"time   {seconds * 1000:.1f} ms")), result)
    return Group(render_card(rank, hit, result.query), Text(), tree, *map(_render_missing, result.missing))


def _render_gate(result: SearchResult) -> Text:
    confidence = "" if result.confidence is None else f", confidence {result.confidence:.2f}"
    if result.skip_reason:
        return Text.assemble("gate   ", ("closed", "yellow"), f": {to_line(result.skip_reason)}{confidence}")
    named = ", ".join(to_line(entity.name) for entity in result.entities)
    return Text.assemble("gate   ", ("open", "green"), confidence, (f"; the question names {named}", DIM))


def _add_times(tree: Tree, result: SearchResult) -> None:
    """Add the time of each stage, and below it the times of the stages of the graph search."""
    stages = [name for name in STAGES if name in result.seconds]
    for number, stage in enumerate(stages):
        branch = tree.add(_render_stage(stage, result, stages[:number]))
        for inner in result.seconds if stage == "graph" else ():
            if inner not in STAGES:
                branch.add(_render_stage(inner, result, ()))


def _render_stage(stage: str, result: SearchResult, before: Sequence[str]) -> Text:
    """Render the time of a stage, marked if an earlier stage ran at the same time: such times do not add up."""
    candidates = result.candidates.get(stage)
    seen = "" if candidates is None else f"  {candidates:,} candidates"
    at_once = "  at the same time" if any(_overlap(stage, each, result) for each in before) else ""
    time = f"{stage:11}{result.seconds[stage] * 1000:7.1f} ms"
    return Text.assemble(time, (f"{seen}{at_once}", DIM))


def _overlap(one: str, other: str, result: SearchResult) -> bool:
    """Return whether two stages ran at the same time."""
    first, second = sorted((one, other), key=result.started.__getitem__)
    return result.started[second] < result.started[first] + result.seconds[first]


# -- the graph -----------------------------------------------------------------------------------------


def render_entity(entity: Entity) -> Text:
    """Render an entity as one line."""
    notes = filter(None, [to_line(entity.type), count(entity.passages, "passage")])
    about = f"\n{to_line(entity.description)}" if entity.description else ""
    return Text.assemble((to_line(entity.name), "bold green"), (f"  {'  '.join(notes)}", DIM), (about, "italic"))


def render_facts(known: Sequence[Fact]) -> RenderableType:
    """Render facts as a table, strongest first; a column without values is left out."""
    table = make_table()
    columns: dict[str, tuple[str, list[str]]] = {
        "subject": (NAME, [to_line(fact.subject) for fact in known]),
        "predicate": (ARROW, [to_line(fact.predicate) for fact in known]),
        "object": ("", [to_line(fact.object) for fact in known]),
        "period": (DIM, [format_period(fact) for fact in known]),
        "status": (DIM, ["" if fact.status == "confirmed" else fact.status for fact in known]),
        "source": (DIM, [fact.source for fact in known]),
        "confidence": (DIM, [f"{fact.confidence:.2f}" for fact in known]),
    }
    used = {name: column for name, column in columns.items() if any(column[1])}
    for name, (style, _) in used.items():
        table.add_column(name, style=style)
    for row in zip(*(values for _, values in used.values()), strict=True):
        table.add_row(*map(Text, row))
    return table


def _indent(what: RenderableType) -> RenderableType:
    return Padding(what, (0, 0, 0, 3))

"""What people are shown at a terminal: hits, explanations, graphs and figures as things that rich prints.

Pure functions from the engine's words to renderables; 80 columns are enough. They open nothing and decide
nothing. Texts are other people's: a control character in one must not reach the terminal.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from waylore.recipes import RECIPES
from waylore.text import terms
from waylore.types.knowledge import Entity, Fact
from waylore.types.results import Branch, Surroundings
from waylore.types.search import FactPath, Found, Hit, Placement

SNIPPET = 220  # characters of a passage that a card shows
LOOKED_AT = 20_000  # and of those among which the best are looked for
BAR = 10
NAME, DIM, ARROW, HIT = "bold", "dim", "cyan", "bold yellow"
STAGES = ("embedding", "dense", "lexical", "link", "graph", "hits", "reranker")
SEARCHES = {"dense": "meaning", "lexical": "words", "graph": "graph"}
_WORD = re.compile(r"\w+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """A text without what a terminal would obey."""
    return _CONTROL.sub("�", text)


def line(text: str) -> str:
    """A text on one line."""
    return " ".join(plain(text).split())


def many(number: int, what: str) -> str:
    """How many of something."""
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number:,} {what if number == 1 else plural}"


# -- hits ----------------------------------------------------------------------------------------------


def answer(found: Found, seconds: float, *, explained: bool = False) -> RenderableType:
    """The hits as cards, best first, and below them what was left out."""
    cards: list[RenderableType] = []
    for rank, hit in enumerate(found.hits, 1):
        cards += [card(rank, hit, found.query), *([_indented(reasons(hit))] if explained else []), Text()]
    return Group(*cards, *footer(found, seconds))


def card(rank: int, hit: Hit, question: str) -> RenderableType:
    """A hit in a few lines: place, score and title, a snippet, the path."""
    head = Table.grid(expand=True, padding=(0, 1))
    head.add_column(width=2, justify="right", style="bold green")
    head.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    head.add_column(justify="right", no_wrap=True, overflow="ellipsis", max_width=38)
    head.add_row(str(rank), Text(title_of(hit), NAME), _where(hit))
    lines: list[RenderableType] = [snippet(_told_below(hit), question)]
    if hit.path:
        lines.append(Text.assemble(("via ", DIM), path(hit.path)))
    return Group(head, _indented(Group(*lines)))


def _told_below(hit: Hit) -> str:
    """A passage's text without the headings that it begins with, for the card has them."""
    named = {line(name) for name in (*hit.passage.headings, hit.passage.title, hit.document.title)}
    lines = hit.passage.text.splitlines()
    while len(lines) > 1 and line(lines[0]).lstrip("# ") in named | {""}:
        lines = lines[1:]
    return "\n".join(lines)


def title_of(hit: Hit) -> str:
    """What a hit is called: its title and headings, else its address, else how it begins."""
    title = hit.passage.title or hit.document.title
    headings = [name for name in hit.passage.headings if name != title]
    named = " › ".join(filter(None, [title, *headings])) or hit.document.uri
    return line(named) or line(hit.passage.text[:60])


def _where(hit: Hit) -> Text:
    address = "" if title_of(hit) == line(hit.document.uri) else line(hit.document.uri)
    return Text.assemble((f"{address} " if address else "", DIM), (f"{hit.score:.3f}", "green"))


def snippet(text: str, question: str) -> Text:
    """The part of a passage that has most of the question's words, those emphasised."""
    asked = frozenset(terms(question))
    shown = Text(_best(line(text[:LOOKED_AT]), asked))
    for word in _WORD.finditer(shown.plain):
        if not asked.isdisjoint(terms(word.group())):
            shown.stylize(HIT, *word.span())
    return shown


def _best(text: str, asked: frozenset[str]) -> str:
    """So many characters from where most of what was asked for begins to be said."""
    if len(text) <= SNIPPET:
        return text
    found = [(word.start(), frozenset(terms(word.group())) & asked) for word in _WORD.finditer(text)]
    places = [start for start, said in found if said]
    start = max(places, key=lambda at: (_said(found, at), -at), default=0)
    begin = text.rfind(" ", 0, max(0, start - 30)) + 1
    end = text.rfind(" ", begin, begin + SNIPPET) if len(text) > begin + SNIPPET else len(text)
    return f"{'… ' if begin else ''}{text[begin:end]}{' …' if end < len(text) else ''}"


def _said(found: Sequence[tuple[int, frozenset[str]]], at: int) -> int:
    return len({term for start, said in found for term in said if at <= start < at + SNIPPET - 40})


def path(way: FactPath) -> Text:
    """The facts that led to a passage, in a line."""
    steps = [fact_of(step.fact, is_forward=step.is_forward) for step in way.steps]
    return Text(" ").join([Text.assemble((line(way.start), NAME)), *steps])


def fact_of(fact: Fact, *, is_forward: bool) -> Text:
    """A fact as a step from one of its ends: the predicate as an arrow, then the other end."""
    predicate = line(fact.predicate)
    arrow = f"—{predicate}→ " if is_forward else f"←{predicate}— "
    other = fact.object if is_forward else fact.subject
    return Text.assemble((arrow, ARROW), (line(other), NAME if fact.object_id else "italic"))


def footer(found: Found, seconds: float) -> Iterator[Text]:
    """How it was searched, and what was left out."""
    hits = many(len(found.hits), "hit") if found.hits else "nothing found"
    yield Text(" · ".join([hits, found.chosen or found.recipe, f"{seconds * 1000:.0f} ms"]), DIM)
    recipe = RECIPES.get(found.recipe)
    if found.skipped and (recipe is None or recipe.graph):
        yield Text(f"the graph was left out: {line(found.skipped)}", DIM)
    for what in found.missing:
        yield _missing(what)


def _missing(what: str) -> Text:
    search, _, reason = line(what).partition(": ")
    return Text(f"not searched: {SEARCHES.get(search, search)}: {reason}", "yellow dim")


# -- why -----------------------------------------------------------------------------------------------


def reasons(hit: Hit) -> RenderableType:
    """The searches that placed a hit and the facts of its path, as a tree."""
    tree = Tree(Text(f"{hit.score:.4f} in all", DIM), guide_style=DIM)
    for placement in hit.placements:
        tree.add(_placement(placement, hit.score))
    if hit.path and hit.path.steps:
        _add_facts(tree.add(Text("the path", DIM)), hit.path)
    return tree


def _placement(placement: Placement, score: float) -> Text:
    part = placement.share / score if score else 0.0
    full = round(BAR * min(max(part, 0.0), 1.0))
    name = SEARCHES.get(placement.search, placement.search)
    asked = f" for “{line(placement.query)}”" if placement.query else ""
    return Text.assemble(
        f"{name:8}",
        ("█" * full, "green"),
        ("░" * (BAR - full), DIM),
        f" {part:4.0%}  ",
        (f"rank {placement.rank}, score {placement.score:.4f}{asked}", DIM),
    )


def _add_facts(tree: Tree, way: FactPath) -> None:
    for step in way.steps:
        start = step.fact.subject if step.is_forward else step.fact.object
        said = fact_of(step.fact, is_forward=step.is_forward)
        branch = tree.add(Text.assemble((f"{line(start)} ", NAME), said, (f"  {_worth(step.fact)}", DIM)))
        if step.fact.statement:
            branch.add(Text(f"“{line(step.fact.statement)}”", "italic"))


def _worth(fact: Fact) -> str:
    status = "" if fact.status == "confirmed" else fact.status
    told = [f"confidence {fact.confidence:.2f}", f"weight {fact.weight:g}", fact.source, status, held(fact)]
    return " · ".join(filter(None, told))


def held(fact: Fact) -> str:
    """When a fact began and ceased to hold, if that is known."""
    begin, end = (f"{day:%Y-%m-%d}" if day else "" for day in (fact.valid_from, fact.valid_to))
    if begin and end:
        return f"{begin} to {end}"
    return f"since {begin}" if begin else f"until {end}" if end else ""


def why(found: Found, rank: int, seconds: float) -> RenderableType:
    """Why one hit is where it is: what every search made of it, the path, the gate, the time it took."""
    hit = found.hits[rank - 1]
    tree = Tree(Text("why it is there", "bold"), guide_style=DIM)
    scores = tree.add(Text(f"score  {hit.score:.4f}"))
    for placement in hit.placements:
        scores.add(_placement(placement, hit.score))
    if hit.path:
        label = Text("path") if hit.path.steps else Text.assemble("path   ", path(hit.path))
        _add_facts(tree.add(label), hit.path)
    tree.add(_gate(found))
    tree.add(Text(f"method {found.chosen or found.recipe}"))
    _add_times(tree.add(Text(f"time   {seconds * 1000:.1f} ms")), found)
    return Group(card(rank, hit, found.query), Text(), tree, *map(_missing, found.missing))


def _gate(found: Found) -> Text:
    sure = "" if found.confidence is None else f", confidence {found.confidence:.2f}"
    if found.skipped:
        return Text.assemble("gate   ", ("closed", "yellow"), f": {line(found.skipped)}{sure}")
    named = ", ".join(line(entity.name) for entity in found.entities)
    return Text.assemble("gate   ", ("open", "green"), sure, (f"; the question names {named}", DIM))


def _add_times(tree: Tree, found: Found) -> None:
    """The stages, and below the graph's those that it has of its own."""
    stages = [name for name in STAGES if name in found.seconds]
    for stage in stages:
        branch = tree.add(_stage(stage, found.seconds[stage], found))
        for inner in found.seconds if stage == "graph" else ():
            if inner not in STAGES:
                branch.add(_stage(inner, found.seconds[inner], found))


def _stage(stage: str, seconds: float, found: Found) -> Text:
    count = found.candidates.get(stage)
    seen = "" if count is None else f"  {count:,} candidates"
    at_once = "  at the same time" if stage in ("lexical", "link") and "dense" in found.seconds else ""
    return Text.assemble(f"{SEARCHES.get(stage, stage):11}{seconds * 1000:7.1f} ms", (f"{seen}{at_once}", DIM))


# -- the graph -----------------------------------------------------------------------------------------


def graph(around: Sequence[Surroundings]) -> RenderableType:
    """Entities with what stands around them, as trees."""
    return Group(*map(_tree, around))


def _tree(around: Surroundings) -> Tree:
    tree = Tree(entity_of(around.entity), guide_style=DIM)
    _grow(tree, around.branches)
    return tree


def _grow(tree: Tree, branches: Iterable[Branch]) -> None:
    for branch in branches:
        told = fact_of(branch.fact, is_forward=branch.is_forward)
        when = held(branch.fact)
        kind = branch.entity.type if branch.entity else ""
        notes = "  ".join(filter(None, [line(kind), when]))
        _grow(tree.add(Text.assemble(told, (f"  {notes}" if notes else "", DIM))), branch.branches)


def entity_of(entity: Entity) -> Text:
    """An entity in a line."""
    notes = filter(None, [line(entity.type), many(entity.passages, "passage")])
    about = f"\n{line(entity.description)}" if entity.description else ""
    return Text.assemble((line(entity.name), "bold green"), (f"  {'  '.join(notes)}", DIM), (about, "italic"))


def facts(known: Sequence[Fact]) -> RenderableType:
    """Facts as a table, strongest first; what is said of none of them has no column."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style=DIM, border_style=DIM)
    columns: dict[str, tuple[str, list[str]]] = {
        "subject": (NAME, [line(fact.subject) for fact in known]),
        "predicate": (ARROW, [line(fact.predicate) for fact in known]),
        "object": ("", [line(fact.object) for fact in known]),
        "held": (DIM, [held(fact) for fact in known]),
        "status": (DIM, ["" if fact.status == "confirmed" else fact.status for fact in known]),
        "source": (DIM, [fact.source for fact in known]),
        "confidence": (DIM, [f"{fact.confidence:.2f}" for fact in known]),
    }
    told = {name: column for name, column in columns.items() if any(column[1])}
    for name, (style, _) in told.items():
        table.add_column(name, style=style)
    for row in zip(*(values for _, values in told.values()), strict=True):
        table.add_row(*map(Text, row))
    return table


def _indented(what: RenderableType) -> RenderableType:
    return Padding(what, (0, 0, 0, 3))

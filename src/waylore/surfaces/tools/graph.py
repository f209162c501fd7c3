"""Query the graph for an agent, and build the answer: a line for each fact, step or entity in one fence.

The answer reports its extent. The line of a fact has its period, a quote, its end, and the mark of the passage for
`memory_get`. The indent of a line is its distance in facts.
"""

from collections.abc import Iterable, Iterator, Sequence

from pydantic import Field

from waylore.engine.waylore import Waylore
from waylore.errors import ArgumentError
from waylore.fence import RECALLED_NOTE, Fence, to_line
from waylore.surfaces.tools.answers import TEXT_DESCRIPTION, ToolAnswer
from waylore.surfaces.tools.arguments import AskGraph
from waylore.types.identity import make_mark
from waylore.types.knowledge import Entity
from waylore.types.relations import Connection, EntityList, PredicateCount, Related, RelatedFact

GraphView = Related | Connection | EntityList
AGAIN = "Several things have this name; ask again with the id of one."
SIMILAR = "No entity has this name, but these contain it; ask again with the id of one."
UNKNOWN = "No entity has this name; memory_search finds passages, and the names that they use."


class GraphAnswer(ToolAnswer):
    """Facts around an entity, paths between two, or a list of entities, and whether these are all."""

    complete: bool = Field(description="true if nothing is missing that is stored and that you may see")
    shown: int = Field(description="the number of facts, paths or entities in the text")
    total: int = Field(description="the number that was found; a minimum if is_exact is false")
    is_exact: bool
    summary: str = Field(description="the extent in words, or why there is no answer")
    text: str = Field(description=TEXT_DESCRIPTION)
    after: str = Field(description="the cursor of the next page of entities; empty if there is none")

    def to_text(self) -> str:
        """Return the lines under their extent."""
        more = f"For the next page: after={self.after}." if self.after else ""
        return "\n\n".join(
            filter(None, [f"{self.summary} {RECALLED_NOTE}" if self.text else self.summary, self.text, more])
        )


def ask_graph(memory: Waylore, asked: AskGraph) -> GraphView:
    """Answer a request of a model: paths if it names two entities, facts if it names one, else a list of entities."""
    if asked.entity and asked.type:
        raise ArgumentError("type lists entities; leave out entity, or type")
    if asked.entity and asked.to:
        return memory.connect(asked.entity, asked.to, max_hops=max(asked.hops, 4), limit=min(asked.limit, 3))
    if asked.entity:
        predicates = asked.predicate or None
        return memory.related(
            asked.entity, predicates=predicates, direction=asked.direction, hops=asked.hops, limit=asked.limit
        )
    return memory.list_entities(
        type=asked.type, predicate=asked.predicate, object=asked.to, after=asked.after, limit=asked.limit
    )


def list_items(view: GraphView) -> list[str]:
    """Return the facts, paths or entities of an answer, or the things that share a name, as lines."""
    if isinstance(view, Connection):
        paths = ["\n".join([f"path of {path.hops}:", *_list_steps(path.steps)]) for path in view.paths]
        return paths or [line for _, some in view.candidates for line in map(_describe_candidate, some)]
    if view.candidates:
        return list(map(_describe_candidate, view.candidates))
    if isinstance(view, Related) and view.similar:
        return list(map(_describe_candidate, view.similar))
    return list(_list_facts(view.facts)) if isinstance(view, Related) else list(map(_describe_entity, view))


def make_graph_answer(view: GraphView, fence: Fence, items: int) -> GraphAnswer:
    """Return an answer with the first `items` lines."""
    lines = list_items(view)
    is_whole = items == len(lines)
    shown, total, is_exact = _get_extent(view)
    shown = min(shown, items)
    after = view.after if isinstance(view, EntityList) and is_whole else ""
    return GraphAnswer(
        complete=is_whole and is_exact and shown == total,
        shown=shown,
        total=total,
        is_exact=is_exact,
        summary=_summarise(view, shown, is_whole=is_whole),
        text=fence.enclose("\n".join([*lines[:items], *list_predicates(view)])),
        after=after,
    )


def list_predicates(view: GraphView) -> Iterator[str]:
    """Yield the predicates that matched the request, and the predicates that did not."""
    if isinstance(view, Connection):
        return
    if view.predicates:
        yield f"matched predicates: {_join(view.predicates)}"
    if view.unmatched:
        yield f"other predicates, not matched: {_join(view.unmatched)}"


def _get_extent(view: GraphView) -> tuple[int, int, bool]:
    if isinstance(view, Connection):
        return len(view.paths), len(view.paths), view.exhaustive or bool(view.paths)
    return view.shown, view.total, view.extent.is_exact


def _summarise(view: GraphView, shown: int, *, is_whole: bool) -> str:
    left = "" if is_whole else " Left out: what did not fit; raise max_tokens, or narrow the question."
    if view.candidates:
        return f"{AGAIN}{left}"
    if isinstance(view, Connection):
        return f"{to_line(str(view)).capitalize()}.{left}"
    noun = "facts" if isinstance(view, Related) else "entities"
    if isinstance(view, Related) and not view.entities:
        return f"{SIMILAR}{left}" if view.similar else UNKNOWN
    if not view.total and view.extent.is_exact:
        return f"There are no such {noun}."
    if view.complete and is_whole:
        return f"All {view.total:,} {noun}; nothing is missing."
    return f"{shown:,} of {'' if view.extent.is_exact else 'at least '}{view.total:,} {noun}.{left}"


def _list_facts(facts: Iterable[RelatedFact], depth: int = 0) -> Iterator[str]:
    for fact in facts:
        yield f"{'  ' * depth}- {_describe_fact(fact)}"
        yield from _list_facts(fact.branches, depth + 1)


def _list_steps(steps: Sequence[RelatedFact]) -> Iterator[str]:
    return (f"{'  ' * depth}- {_describe_fact(step)}" for depth, step in enumerate(steps))


def _describe_fact(fact: RelatedFact) -> str:
    told = fact.assertion
    notes = [
        fact.entity.type if fact.entity else "",
        *fact.period,
        f"{fact.end.kind}: {fact.end.by.fact}" if fact.end and fact.end.by else "",
        f"“{told.quote}”" if told.quote else "",
        f"passage {make_mark(told.passage.id)}",
    ]
    return to_line(f"{told.fact} ({'; '.join(filter(None, notes))})")


def _describe_entity(entity: Entity, *more: str) -> str:
    notes = "; ".join(filter(None, (entity.type, entity.description, *more)))
    return to_line(f"- {entity.name} ({notes})" if notes else f"- {entity.name}")


def _describe_candidate(entity: Entity) -> str:
    return _describe_entity(entity, f"id {entity.id}")


def _join(counts: Iterable[PredicateCount]) -> str:
    return ", ".join(f"{to_line(each.predicate)} ({each.facts})" for each in counts)

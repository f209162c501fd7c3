"""Four small worlds, and the answers that a sensible person wants to questions about them.

`golden/WORLD.json` has the documents of a world with the facts they state, `golden/WORLD.questions.json` the
questions: which passages must be among the first hits, by which path, what must not be shown, and whether the
recipe helps where another does not. Expectations were written before the answers were seen. The rank that a hit
may have was then relaxed if it was too strict, and so that slightly different vectors change nothing. Answers
that are wrong today are not included. Rankings need real vectors: the test weights.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from requirements import find_model
from waylore import Embedder, Filter, Hit, NewFact, SearchResult, Waylore
from waylore.providers.embedders.fastembed import FastEmbedder
from waylore.recipes import HYBRID, RECIPES
from waylore.retrieval.context.block import Layout
from waylore.types.knowledge import Metadata

GOLDEN = Path(__file__).parent / "golden"
WORLDS = ("assistant", "family", "papers", "systems")
OF_TURNS = ("conversation", "mixed")  # golden turns are in tests/retrieval
METHODS = ("auto", *(name for name in RECIPES if name not in OF_TURNS))
FENCE = re.compile(r"^<<recalled [a-z]+\n|\n[a-z]+>>$", re.MULTILINE)  # around each passage of a context


@dataclass(frozen=True, slots=True)
class ContextExpectation:
    """Lines that the context of an answer must contain, and lines that it must not."""

    layout: Layout
    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GoldenQuestion:
    """A question and the expectations of its answer; missing expectations are not checked.

    `hits` are among the `first` hits, in that order if `in_order`; `not_hits` are nowhere. `helps` means that
    one of `hits` is not among the first of the method `over`; if it is false, all of them are there as well.
    """

    id: str
    world: str
    question: str
    recipe: str
    helps: bool
    over: str = HYBRID.name
    top_k: int = 5
    labels: tuple[str, ...] | None = None
    metadata: Metadata = field(default_factory=dict)
    as_of: datetime | None = None
    first: int = 5
    hits: tuple[str, ...] = ()
    in_order: bool = False
    not_hits: tuple[str, ...] = ()
    paths: Mapping[str, str] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    not_told: tuple[str, ...] = ()
    entities: tuple[str, ...] | None = None
    skipped: str | None = None
    route_reason: str = ""
    context: ContextExpectation | None = None

    @property
    def where(self) -> Filter:
        labels = None if self.labels is None else frozenset(self.labels)
        return Filter(labels=labels, metadata=self.metadata)

    def ask(self, memory: Waylore, method: str, *, top_k: int) -> SearchResult:
        return memory.search(
            self.question, top_k=top_k, where=self.where, method=method, as_of=self.as_of, record_use=False
        )


def parse_day(day: str) -> datetime:
    return datetime.fromisoformat(day).replace(tzinfo=UTC)


def read_json(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))


def load_questions() -> list[GoldenQuestion]:
    return [make_question(world, **plain) for world in WORLDS for plain in read_json(f"{world}.questions")]


def make_question(world: str, **plain: Any) -> GoldenQuestion:
    for name in ("hits", "not_hits", "told", "not_told", "entities", "labels"):
        if name in plain:
            plain[name] = tuple(plain[name])
    if "as_of" in plain:
        plain["as_of"] = parse_day(plain["as_of"])
    if "context" in plain:
        plain["context"] = ContextExpectation(**plain["context"])
    return GoldenQuestion(world=world, **plain)


QUESTIONS = load_questions()


# -- the worlds ----------------------------------------------------------------------------------------


def fill_memory(path: Path, embedder: Embedder | None, world: str) -> Waylore:
    """Open a new collection with the documents of a world, each recorded at its time."""
    plain = read_json(world)
    now = parse_day(plain["now"])
    today = [now]
    memory = Waylore.open(path / f"{world}.waylore", embedder=embedder, extractor=None, clock=lambda: today[0])
    for document in plain["documents"]:
        today[0] = parse_day(document.pop("recorded")) if "recorded" in document else now
        source = document.get("source", "file")
        memory.add(**document | {"facts": [make_fact(fact, source) for fact in document.pop("facts", ())]})
    today[0] = now
    return memory


def make_fact(fact: list[str] | dict[str, Any], source: str) -> NewFact:
    """Return a fact from its data: three words, or an object with all fields."""
    named = fact if isinstance(fact, dict) else dict(zip(("subject", "predicate", "object"), fact, strict=True))
    times = {name: parse_day(day) for name, day in named.items() if name.startswith("valid_")}
    return NewFact(**{"source": source} | named | times)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Waylore]]:
    embedder = FastEmbedder(path=find_model("bge-small"), threads=1)
    path = tmp_path_factory.mktemp("golden")
    opened: dict[str, Waylore] = {}

    def open_world(name: str) -> Waylore:
        if name not in opened:
            opened[name] = fill_memory(path, embedder, name)
        return opened[name]

    yield open_world
    for memory in opened.values():
        memory.close()


# -- the check -----------------------------------------------------------------------------------------


def check(memory: Waylore, golden: GoldenQuestion) -> None:
    """Search, compare, and show question, answer and expectation if they differ."""
    found = golden.ask(memory, golden.recipe, top_k=golden.top_k)
    other = golden.ask(memory, golden.over, top_k=max(golden.first, golden.top_k))
    wrong = [*_check_hits(golden, found, other), *_check_paths(golden, found), *_check_texts(golden, found)]
    wrong += _check_promises(memory, golden, found)
    if golden.context:
        text = FENCE.sub("", memory.context(found, layout=golden.context.layout).text)
        wrong += [f"the context lacks {line!r} in\n{text}" for line in golden.context.has if line not in text]
        wrong += [f"the context has {line!r} in\n{text}" for line in golden.context.lacks if line in text]
    if wrong:
        pytest.fail("\n".join([_describe(golden, found, other), "", *(f"- {line}" for line in wrong)]), pytrace=False)


def _check_hits(golden: GoldenQuestion, found: SearchResult, other: SearchResult) -> Iterator[str]:
    every = [hit.document.uri for hit in found.hits]
    first, theirs = every[: golden.first], [hit.document.uri for hit in other.hits[: golden.first]]
    for uri in golden.hits:
        if uri not in first:
            yield f"{uri} must be among the first {golden.first}"
    if golden.in_order and [uri for uri in every if uri in golden.hits] != list(golden.hits):
        yield f"the order must be {', '.join(golden.hits)}"
    for uri in golden.not_hits:
        if uri in every:
            yield f"{uri} must not be in the answer"
    has_all = set(golden.hits) <= set(theirs)
    if golden.helps and has_all:
        yield f"it should help, but {golden.over} has all of them among its first {golden.first}, too"
    if not golden.helps and not has_all:
        yield f"it should not help, but {golden.over} has not all of them among its first {golden.first}"


def _check_paths(golden: GoldenQuestion, found: SearchResult) -> Iterator[str]:
    paths = {hit.document.uri: str(hit.path) for hit in found.hits if hit.path}
    for uri, path in golden.paths.items():
        if paths.get(uri) != path:
            yield f"the path to {uri} must be {path!r}, not {paths.get(uri)!r}"
    told = {str(fact) for fact in found.facts} | {str(f) for h in found.hits if h.path for f in h.path.facts}
    yield from (f"it must tell {fact}" for fact in golden.told if fact not in told)
    yield from (f"it must not tell {fact}" for fact in golden.not_told if fact in told)


def _check_texts(golden: GoldenQuestion, found: SearchResult) -> Iterator[str]:
    linked = sorted(entity.name for entity in found.entities)
    if golden.entities is not None and linked != sorted(golden.entities):
        yield f"the question names {sorted(golden.entities)}, not {linked}"
    is_expected = found.skip_reason.startswith(golden.skipped) if golden.skipped else not found.skip_reason
    if golden.skipped is not None and not is_expected:
        yield f"the graph must be left out because {golden.skipped!r}, not {found.skip_reason!r}"
    if golden.route_reason != found.route_reason:
        yield f"the method must be chosen because {golden.route_reason!r}, not {found.route_reason!r}"


def _check_promises(memory: Waylore, golden: GoldenQuestion, found: SearchResult) -> Iterator[str]:
    """Check what holds for every answer: the best of the base are hits, and a skipped graph adds nothing."""
    if not RECIPES[found.recipe].has_hybrid:
        yield from (f"{hit.document.uri} has no path" for hit in found.hits if not hit.path)
        return
    recipe = replace(RECIPES[found.recipe], graph="", top_k=golden.top_k)
    base = memory.search(golden.question, method=recipe, where=golden.where, record_use=False)
    ids, kept = [hit.passage.id for hit in found.hits], [hit.passage.id for hit in base.hits]
    is_literal = RECIPES[found.recipe].merge.max_graph_passages is not None
    if not set(kept if is_literal else kept[: golden.top_k // 3]) <= set(ids):
        yield "the graph took one of the best passages of the base away"
    if not set(kept) <= {scored.id for scored in found.ranking}:
        yield "the ranking lacks a passage of the base"
    if not is_literal and len(ids) > golden.top_k:
        yield f"there are {len(ids)} hits"
    if found.skip_reason and (ids != kept or found.facts or any(hit.path for hit in found.hits)):
        yield "the graph was left out, and yet it changed the answer"
    if found.missing:
        yield f"something could not be searched: {found.missing}"


def _describe(golden: GoldenQuestion, found: SearchResult, other: SearchResult) -> str:
    question = f"{golden.question}  ({golden.world}, {golden.recipe}, {golden.labels}, {golden.as_of})"
    linked = ", ".join(entity.name for entity in found.entities)
    gate = f"names: {linked or 'nothing'}; {found.skip_reason or f'walked with confidence {found.confidence}'}"
    ours = [_format_line(rank, hit) for rank, hit in enumerate(found.hits, start=1)]
    theirs = [_format_line(rank, hit) for rank, hit in enumerate(other.hits, start=1)]
    wanted = f"wanted among the first {golden.first}: {', '.join(golden.hits) or 'nothing in particular'}"
    return "\n".join([question, gate, *ours, f"and {golden.over}:", *theirs, wanted])


def _format_line(rank: int, hit: Hit) -> str:
    return f"{rank:3}. {hit.score:.4f}  {hit.document.uri:22}{hit.path or ''}"


# -- the tests -----------------------------------------------------------------------------------------


@pytest.mark.model
@pytest.mark.parametrize("golden", QUESTIONS, ids=lambda g: f"{g.recipe}-{g.world}-{g.id}")
def test_golden_question_is_answered_as_expected(world: Callable[[str], Waylore], golden: GoldenQuestion) -> None:
    check(world(golden.world), golden)


def test_every_recipe_has_both_kinds_of_questions() -> None:
    kinds = Counter((golden.recipe, golden.helps) for golden in QUESTIONS)
    assert len(QUESTIONS) >= 40
    assert {recipe for recipe, _ in kinds} == set(METHODS)
    assert [f"{m} {helps}" for m in METHODS for helps in (True, False) if kinds[m, helps] < 2] == []


def test_questions_name_existing_documents() -> None:
    known = {world: {document["uri"] for document in read_json(world)["documents"]} for world in WORLDS}
    for golden in QUESTIONS:
        assert {*golden.hits, *golden.not_hits, *golden.paths} <= known[golden.world], golden.id
        assert golden.hits or golden.not_hits or golden.told, golden.id
    names = Counter((golden.world, golden.id) for golden in QUESTIONS)
    assert [name for name, times in names.items() if times > 1] == []

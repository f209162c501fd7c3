"""Call every public method with every kind of wrong and odd value.

The outcome is an ArgumentError that names the parameter, or a stated result. A public parameter without a row
fails the test.
"""

import inspect
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from waylore import Filter, NewFact, Waylore, WayloreError
from waylore.config import CacheConfig
from waylore.errors import ArgumentError, ClosedError, NotFound
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.store.receipts import record_as
from waylore.types.author import OWNER
from waylore.types.results import Receipt

KINDS: dict[str, Any] = {
    "wrong type": object(),
    "empty": "",
    "none": None,
    "naive date": datetime(2026, 1, 1),
    "unicode": "Zoë \U0001f600 שלום",
    "very long": "x" * 100_000,
}
# The outcome of each kind of value, in the order of KINDS: E is an ArgumentError that names the parameter, N is
# NotFound, and . is accepted.
ROWS = {
    "add.text": "E E E E . .",
    "add.title": "E . . E . E",
    "add.uri": "E . . E . E",
    "add.metadata": "E E . E E E",
    "add.labels": "E E . E . E",
    "add.source": "E E E E E E",
    "add.facts": "E E . E E E",
    "add_facts.facts": "E E E E E E",
    "add_facts.metadata": "E E . E E E",
    "add_facts.labels": "E E . E . E",
    "add_facts.source": "E E E E E E",
    "add_files.path": "E E E E N E",
    "add_files.root": "E E . E E E",
    "add_files.uri": "E . . E . E",
    "add_files.metadata": "E E . E E E",
    "add_files.labels": "E E . E . E",
    "add_files.limits": "E E E E E E",
    "add_files.prune": "E E E E E E",
    "add_files.progress": "E E E E E E",
    "as_author.author": "E E E E E E",
    "context.result": "E E E E . E",
    "context.layout": "E E E E E E",
    "context.max_tokens": "E E . E E E",
    "context.config": "E E . E E E",
    "context.count": "E E E E E E",
    "timeline.entity": "E E E E . E",
    "timeline.since": "E E . . E E",
    "timeline.until": "E E . . E E",
    "timeline.limit": "E E E E E E",
    "timeline.where": "E E . E E E",
    "timeline.user": "E . . E . E",
    "profile.user": "E . . E . E",
    "profile.budget": "E E E E E E",
    "profile.where": "E E . E E E",
    "changes.user": "E . . E . E",
    "changes.since": "E E . . E E",
    "changes.until": "E E . . E E",
    "changes.entity": "E . . E . E",
    "changes.limit": "E E E E E E",
    "changes.where": "E E . E E E",
    "provenance.item": "E E E E N E",
    "provenance.around": "E E E E E E",
    "provenance.where": "E E . E E E",
    "provenance.user": "E . . E . E",
    "documents.under": "E . . E . E",
    "documents.after": "E E . E E E",
    "documents.limit": "E E E E E E",
    "documents.where": "E E . E E E",
    "export.path": "E E E E . E",
    "export.progress": "E E E E E E",
    "facts.name": "E E E E . E",
    "facts.as_of": "E E . . E E",
    "facts.limit": "E E E E E E",
    "facts.where": "E E . E E E",
    "forget.documents": "E E E E . E",
    "forget.where": "E E . E E E",
    "get.document": "E E E E N E",
    "get.where": "E E . E E E",
    "get_passage.passage": "E E E E N E",
    "get_passage.where": "E E . E E E",
    "get_receipt.receipt": "E E E E N E",
    "related.entity": "E E E E . E",
    "related.predicates": "E E . E . E",
    "related.direction": "E E E E E E",
    "related.hops": "E E E E E E",
    "related.as_of": "E E . . E E",
    "related.where": "E E . E E E",
    "related.user": "E . . E . E",
    "related.limit": "E E E E E E",
    "connect.a": "E E E E . E",
    "connect.b": "E E E E . E",
    "connect.max_hops": "E E E E E E",
    "connect.limit": "E E E E E E",
    "connect.as_of": "E E . . E E",
    "connect.where": "E E . E E E",
    "connect.user": "E . . E . E",
    "list_entities.type": "E . . E . E",
    "list_entities.predicate": "E . . E . E",
    "list_entities.object": "E . . E . E",
    "list_entities.name": "E . . E . E",
    "list_entities.after": "E . . E E E",
    "list_entities.limit": "E E E E E E",
    "list_entities.as_of": "E E . . E E",
    "list_entities.where": "E E . E E E",
    "list_entities.user": "E . . E . E",
    "import_.path": "E E E E N E",
    "import_.format": "E E E E E E",
    "import_.uri": "E . . E . E",
    "import_.metadata": "E E . E E E",
    "import_.labels": "E E . E . E",
    "import_.limits": "E E E E E E",
    "import_.progress": "E E E E E E",
    "make_fence.texts": "E . E E . .",
    "mark_distinct.name": "E E E E . E",
    "mark_distinct.other": "E E E E . E",
    "mark_distinct.labels": "E E . E . E",
    "mark_same.name": "E E E E . E",
    "mark_same.other": "E E E E . E",
    "mark_same.labels": "E E . E . E",
    "merges.name": "E E E E . E",
    "merges.where": "E E . E E E",
    "open.url": "E E E E . E",
    "open.collection": "E E E E . E",
    "open.embedder": "E E . E E E",
    "open.extractor": "E E . E E E",
    "open.single_valued": "E E . E . E",
    "open.clock": "E E E E E E",
    "open.timezone": "E E E E E E",
    "open.cache": "E E . E E E",
    "open.method": "E E E E E E",
    "open.top_k": "E E . E E E",
    "open.reranker": "E E . E E E",
    "open.observer": "E E . E E E",
    "open.author": "E E E E E E",
    "open.scrub": "E E E E E E",
    "reembed.url": "E E E E N E",
    "reembed.embedder": "E E E E E E",
    "reembed.collection": "E E E E . E",
    "reembed.progress": "E E E E E E",
    "reembed.author": "E E E E E E",
    "search.query": "E E E E . E",
    "search.top_k": "E E . E E E",
    "search.where": "E E . E E E",
    "search.method": "E E . E E E",
    "search.as_of": "E E . . E E",
    "search.reranker": "E E . E E E",
    "search.rerank": "E E . E E E",
    "search.record_use": "E E E E E E",
    "search.min_similarity": "E E . E E E",
    "verify_forgotten.receipt": "E E E E E E",
    "warm_cache.names": "E E E E . E",
    "warm_cache.limit": "E E E E E E",
    "add.user": "E . . E . E",
    "add.agent": "E . . E . E",
    "add.session": "E . . E . E",
    "add.at": "E E . . E E",
    "add_facts.user": "E . . E . E",
    "add_facts.agent": "E . . E . E",
    "add_facts.session": "E . . E . E",
    "add_facts.at": "E E . . E E",
    "remember.user": "E . . E . E",
    "remember.agent": "E . . E . E",
    "remember.session": "E . . E . E",
    "remember.at": "E E . . E E",
    "remember.messages": "E E E E . .",
    "remember.facts": "E E . E E E",
    "remember.tools": "E E E E E E",
    "remember.metadata": "E E . E E E",
    "remember.labels": "E E . E . E",
    "search.user": "E . . E . E",
    "search.agent": "E . . E . E",
    "search.session": "E . . E . E",
    "search.since": "E E . . E E",
    "search.until": "E E . . E E",
    "forget.user": "E . . E . E",
    "forget.agent": "E . . E . E",
    "forget.session": "E . . E . E",
    "forget.since": "E E . . E E",
    "forget.until": "E E . . E E",
    "forget.dry_run": "E E E E E E",
    "search.group_by": "E E E E E E",
    "import_.user": "E . . E . E",
    "find_about.names": "E E E E . E",
    "find_about.where": "E E . E E E",
    "find_about.user": "E . . E . E",
    "find_about.progress": "E E E E E E",
    "remove_statements.names": "E E E E . E",
    "remove_statements.documents": "E E E E . E",
    "remove_statements.where": "E E . E E E",
    "remove_statements.user": "E . . E . E",
    "audit.after": "E E E E E E",
    "audit.limit": "E E E E E E",
    "forget.matching": "E . . E E E",
    "quarantine.author": "E E E E . E",
    "release.author": "E E E E . E",
    "forget_quarantined.author": "E E E E . E",
    "get.user": "E . . E . E",
    "get_passage.user": "E . . E . E",
    "facts.user": "E . . E . E",
    "documents.user": "E . . E . E",
    "documents.include_expired": "E E E E E E",
    "get.include_expired": "E E E E E E",
    "forget.expired": "E E E E E E",
    "forget.older_than": "E E . E E E",
    "add.expires": "E E . . E E",
    "add_files.expires": "E E . . E E",
    "add_facts.expires": "E E . . E E",
    "remember.expires": "E E . . E E",
    "users.after": "E . . E . E",
    "users.limit": "E E E E E E",
    "enrich.extractor": "E E E E E E",
    "enrich.where": "E E . E E E",
    "enrich.user": "E . . E . E",
    "enrich.limit": "E E E E E E",
    "enrich.run": "E . . E . E",
    "enrich.progress": "E E E E E E",
    "undo_enrichment.run": "E E E E N E",
}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Waylore]:
    with Waylore.open(tmp_path / "a.waylore") as memory:
        memory.add("Ada wrote the notes.", uri="a.md", facts=[("Ada", "wrote", "notes")])
        yield memory


def list_calls(memory: Waylore, folder: Path) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Return each public method with valid arguments."""
    (folder / "n").mkdir(exist_ok=True)
    (folder / "n" / "a.md").write_text("# A\n\nAda sails.\n")
    [document] = memory.documents(limit=1)
    memory.export(folder / "export.jsonl")
    with record_as("1" * 32):
        memory.forget(memory.add("Forget this."))
    return {
        "open": (lambda **options: Waylore.open(**options).close(), {"url": folder / "b.waylore"}),
        "as_author": (memory.as_author, {"author": OWNER}),
        "add": (memory.add, {"text": "Byron wrote verse."}),
        "add_files": (memory.add_files, {"path": folder / "n"}),
        "add_facts": (memory.add_facts, {"facts": [("Ada", "likes", "tea")]}),
        "remember": (memory.remember, {"messages": "I like tea."}),
        "mark_distinct": (memory.mark_distinct, {"name": "Ada", "other": "Byron"}),
        "mark_same": (memory.mark_same, {"name": "Ada", "other": "Lovelace"}),
        "import_": (memory.import_, {"path": folder / "export.jsonl"}),
        "search": (memory.search, {"query": "Who wrote the notes?"}),
        "context": (memory.context, {"result": memory.search("Ada")}),
        "warm_cache": (lambda **options: memory.warm_cache(options.pop("names", "Ada"), **options), {}),
        "get": (memory.get, {"document": document.id}),
        "get_passage": (memory.get_passage, {"passage": memory.get(document.id).passages[0].id}),
        "facts": (memory.facts, {"name": "Ada"}),
        "related": (memory.related, {"entity": "Ada"}),
        "connect": (memory.connect, {"a": "Ada", "b": "notes"}),
        "list_entities": (memory.list_entities, {}),
        "timeline": (memory.timeline, {"entity": "Ada"}),
        "profile": (memory.profile, {}),
        "changes": (memory.changes, {}),
        "provenance": (memory.provenance, {"item": memory.get(document.id).passages[0].id}),
        "enrich": (memory.enrich, {"extractor": RuleExtractor()}),
        "undo_enrichment": (memory.undo_enrichment, {"run": "one"}),
        "documents": (memory.documents, {}),
        "merges": (memory.merges, {"name": "Ada"}),
        "make_fence": (lambda **options: memory.make_fence(*([options["texts"]] if options else ())), {}),
        "stats": (memory.stats, {}),
        "growth": (memory.growth, {}),
        "users": (memory.users, {}),
        "forget": (lambda **options: memory.forget(options.pop("documents", "nope"), **options), {}),
        "audit": (memory.audit, {}),
        "quarantine": (memory.quarantine, {"author": "key:none"}),
        "release": (memory.release, {"author": "key:none"}),
        "forget_quarantined": (memory.forget_quarantined, {"author": "key:none"}),
        "list_quarantined": (memory.list_quarantined, {}),
        "find_about": (memory.find_about, {"names": "Ada"}),
        "remove_statements": (memory.remove_statements, {"names": "Ada", "documents": "nope"}),
        "get_receipt": (memory.get_receipt, {"receipt": "1" * 32}),
        "verify_forgotten": (memory.verify_forgotten, {"receipt": Receipt()}),
        "compact": (memory.compact, {}),
        "export_lines": (lambda: list(memory.export_lines()), {}),
        "export": (memory.export, {"path": folder / "out.jsonl"}),
        "reembed": (
            Waylore.reembed,
            {"url": folder / "a.waylore", "embedder": HashingEmbedder(64, quiet=True)},
        ),
    }


def list_parameters() -> list[str]:
    """Return every parameter of every public synchronous method, as method.parameter."""
    methods = {
        name: method
        for name, method in inspect.getmembers(Waylore, callable)
        if not name.startswith("_") and not inspect.iscoroutinefunction(method)
    }
    skipped = {"close", "is_closed", "observe_call"}
    return [
        f"{name}.{parameter}"
        for name, method in methods.items()
        if name not in skipped
        for parameter in inspect.signature(method).parameters
        if parameter not in ("self", "cls")
    ]


def describe_outcome(call: Callable[..., Any], options: dict[str, Any], parameter: str) -> str:
    try:
        call(**options)
    except ArgumentError as error:
        return "E" if parameter in str(error) else f"{error} does not name {parameter}"
    except NotFound:
        return "N"
    return "."


def test_every_public_parameter_has_a_row() -> None:
    assert sorted(ROWS) == sorted(list_parameters())


@pytest.mark.parametrize("row", list_parameters())
def test_wrong_arguments_are_refused_by_name(
    memory: Waylore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str
) -> None:
    monkeypatch.chdir(tmp_path)
    method, parameter = row.split(".")
    call, options = list_calls(memory, tmp_path)[method]
    outcomes = {kind: describe_outcome(call, {**options, parameter: value}, parameter) for kind, value in KINDS.items()}
    assert outcomes == dict(zip(KINDS, ROWS[row].split(), strict=True))


# -- single calls --------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[Callable[[Waylore], Any], str]] = {
    "a class instead of open": (lambda _: Waylore("a.waylore"), "use Waylore.open"),  # type: ignore[arg-type]
    "bytes as url": (lambda _: Waylore.open(b"a.waylore"), "url must be a file name"),  # type: ignore[arg-type]
    "an embedder by name": (lambda _: Waylore.open("a", embedder="bge-small"), "FastEmbedder"),  # type: ignore[arg-type]
    "a collection of several": (lambda _: Waylore.open("a", collection="a,b"), "collection must not contain"),
    "a list of texts": (lambda m: m.add(["a", "b"]), "call add for each text"),  # type: ignore[arg-type]
    "options by position": (lambda m: m.add("t", "title"), "given by name"),  # type: ignore[call-arg]
    "an unknown option": (lambda m: m.search("t", limit=3), "top_k, where, method"),  # type: ignore[call-arg]
    "a nested dict": (lambda m: m.add("t", metadata={"a": {"b": 1}}), "metadata 'a'"),  # type: ignore[dict-item]
    "a set": (lambda m: m.add("t", metadata={"a": {1}}), "metadata 'a'"),  # type: ignore[dict-item]
    "NaN": (lambda m: m.add("t", metadata={"a": float("nan")}), "finite number"),
    "a huge number": (lambda m: m.add("t", metadata={"a": 10**40}), "finite number"),
    "a key that is a number": (lambda m: m.add("t", metadata={1: 2}), "keys of metadata"),  # type: ignore[dict-item]
    "a NUL character": (lambda m: m.add("a\x00b"), "NUL"),
    "a question of NUL": (lambda m: m.search("\x00"), "NUL"),
    "an unknown source": (lambda m: m.add("t", source="web"), "source must be one of"),  # type: ignore[arg-type]
    "one fact, no list": (lambda m: m.add_facts(("A", "likes", "B")), "put the one fact into a list"),
    "a fact as a string": (lambda m: m.add_facts("A likes B"), "list of facts"),
    "a string in the list": (lambda m: m.add_facts([("A", "likes", "B"), "abc"]), r"facts\[1\]"),
    "a fact of four": (lambda m: m.add_facts([("a", "b", "c", "d")]), r"facts\[0\]"),
    "a fact without an object": (lambda m: m.add_facts([("a", "b", None)]), r"facts\[0\]: object"),
    "a fact with an unknown field": (
        lambda m: m.add_facts([{"subject": "A", "predicate": "likes", "object": "B", "when": 1}]),
        r"facts\[0\]: .*when",
    ),
    "a period that ends first": (
        lambda m: m.add_facts(
            [{"subject": "A", "predicate": "b", "object": "c", "valid_from": "2021", "valid_to": "x"}]
        ),
        "valid_from|valid_to",
    ),
    "a question of a novel": (lambda m: m.search("x" * 8_001), "query must have at most 8,000 characters, got 8,001"),
    "a library as a text": (
        lambda m: m.add("x" * 1_000_001),
        "text must have at most 1,000,000 .* add_files for files",
    ),
    "a long title": (lambda m: m.add("t", title="x" * 1_001), "title must have at most 1,000 .* shorten it"),
    "a fact with a long name": (lambda m: m.add_facts([("x" * 1_001, "is", "b")]), r"facts\[0\]: subject must have"),
    "a fact with a long statement": (
        lambda m: m.add_facts([NewFact("a", "is", "b", statement="x" * 10_001)]),
        r"facts\[0\]: statement must have at most 10,000",
    ),
    "a book as metadata": (
        lambda m: m.add("t", metadata={f"k{n}": "x" * 999 for n in range(1_100)}),
        "metadata must have",
    ),
    "a number as text": (lambda m: m.search("t", top_k="5"), "top_k must be a whole number"),  # type: ignore[arg-type]
    "a fraction": (lambda m: m.search("t", top_k=2.5), "top_k must be a whole number"),  # type: ignore[arg-type]
    "a truth value": (lambda m: m.search("t", top_k=True), "top_k must be a whole number"),
    "a number beyond all": (lambda m: m.search("t", top_k=10**30), "top_k must be a whole number"),
    "zero as a time": (lambda m: m.search("t", as_of=0), "as_of must be"),  # type: ignore[arg-type]
    "an unknown method": (lambda m: m.search("t", method="magic"), "unknown method 'magic'"),
    "an unknown layout": (lambda m: m.context("Ada", layout="xml"), "layout must be one of"),  # type: ignore[arg-type]
    "a negative limit": (lambda m: m.documents(limit=-1), "limit must be a whole number"),
    "no facts": (lambda m: m.facts("Ada", limit=-1), "limit must be a whole number"),
    "forgetting nothing": (lambda m: m.forget(), "documents must not be empty"),
    "forgetting an empty list": (lambda m: m.forget([]), "documents must not be empty"),
    "an export into no folder": (lambda m: m.export("nowhere/x.jsonl"), "cannot be written"),
    "an export over a folder": (lambda m: m.export("."), "cannot be written|must be the path"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_odd_calls_are_refused(memory: Waylore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    call, message = REFUSED[name]
    with pytest.raises(ArgumentError, match=message) as caught:
        call(memory)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, WayloreError)


def test_missing_files_are_not_found(memory: Waylore, tmp_path: Path) -> None:
    for call in (memory.add_files, memory.import_):
        with pytest.raises(NotFound, match="check the path"):
            call(tmp_path / "nowhere")
    with pytest.raises(NotFound, match="no store"):
        Waylore.reembed(tmp_path / "typo.waylore", embedder=HashingEmbedder(64, quiet=True))
    assert not (tmp_path / "typo.waylore").exists()


def test_one_string_is_one_label(memory: Waylore) -> None:
    id_ = memory.add("Ada earns ten crowns.", labels="staff")
    assert memory.get(id_).document.labels == {"staff"}
    assert Filter(labels="staff").labels == frozenset({"staff"})  # type: ignore[arg-type]
    assert not memory.search("crowns", where=Filter(labels="s")).hits  # type: ignore[arg-type]
    assert memory.search("crowns", where=Filter(labels="staff")).hits  # type: ignore[arg-type]


def test_none_stands_for_the_default(memory: Waylore) -> None:
    metadata: dict[str, Any] = {"a": None, "d": date(2026, 1, 2)}
    id_ = memory.add("Text.", title=None, uri=None, metadata=metadata, labels=None, facts=None)
    assert dict(memory.get(id_).document.metadata) == {"d": "2026-01-02"}
    assert memory.search("Text", where=None, as_of=None, top_k=None)


def test_facts_may_be_tuples_dicts_or_objects(memory: Waylore) -> None:
    facts: list[Any] = [
        ("Ada", "age", 36),
        {"subject": "Ada", "predicate": "lives_in", "object": "London", "valid_from": "1815-12-10"},
        NewFact("Ada", "born", date(1815, 12, 10)),  # type: ignore[arg-type]
        ["Ada", "knows", "Byron"],
    ]
    memory.add_facts(facts)
    known = {fact.predicate: fact for fact in memory.facts("Ada")}
    assert (known["age"].object, known["age"].object_id) == ("36", "")
    assert known["lives_in"].valid_from == datetime(1815, 12, 10, tzinfo=UTC)
    assert (known["born"].object, known["born"].object_id) == ("1815-12-10", "")
    assert known["knows"].object_id


def test_dates_follow_one_rule(memory: Waylore) -> None:
    memory.add_facts([{"subject": "Ada", "predicate": "lives_in", "object": "Kiel", "valid_from": "2020-01-01"}])
    moments: list[Any] = ["2021-01-01", date(2021, 1, 1), datetime(2021, 1, 1), "2021-01-01T00:00:00Z"]
    answers = [memory.facts("Ada", as_of=moment) for moment in moments]
    assert all(answer == answers[0] for answer in answers)
    assert "Kiel" in [fact.object for fact in answers[0]]
    assert "Kiel" not in [fact.object for fact in memory.facts("Ada", as_of="2019-12-31")]


def test_forget_takes_addresses_and_reports_missing_ones(memory: Waylore) -> None:
    receipt = memory.forget(["a.md", "b.md"], "nope")
    assert (len(receipt.documents), receipt.missing) == (1, ("b.md", "nope"))


@pytest.mark.parametrize("cache", [0, None, CacheConfig(size=0), 0.5])
def test_cache_can_be_off(tmp_path: Path, cache: Any) -> None:
    with Waylore.open(tmp_path / "c.waylore", cache=cache) as memory:
        memory.add("Ada sails.")
        assert memory.search("Ada").hits == memory.search("Ada").hits


def test_results_behave_like_a_list_of_hits(memory: Waylore) -> None:
    result = memory.search("Who wrote the notes?")
    assert result
    assert list(result) == list(result.hits)
    assert len(result) == len(result.hits)
    hit = result.hits[0]
    assert (hit.id, hit.text, hit.uri) == (hit.passage.id, hit.passage.text, "a.md")
    assert not memory.search("zebra")


def test_closed_collections_refuse_every_call(tmp_path: Path) -> None:
    memory = Waylore.open(tmp_path / "a.waylore")
    memory.add("Ada wrote the notes.", uri="a.md")
    every = list_calls(memory, tmp_path)
    memory.close()
    memory.close()
    for name, (call, options) in every.items():
        if name not in ("open", "reembed"):
            with pytest.raises(ClosedError, match="open it again"):
                call(**options)

"""Test the facade on a real file: add, search, forget, export, import, reembed, and errors."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from waylore import Filter, NewFact, Waylore
from waylore.errors import (
    ArgumentError,
    ConfigError,
    Forbidden,
    ModelMismatch,
    ModelUnavailable,
    NotFound,
    StoreUnavailable,
)
from waylore.protocols import Vectors
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import CHAIN
from waylore.store.sqlite.store import SqliteStore
from waylore.types.author import OWNER, Author
from waylore.types.knowledge import Document, IndexedDocument, Passage, Vector

EMBEDDER = HashingEmbedder(64, quiet=True)
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)
TEXTS = {
    "Ada Lovelace": "Ada Lovelace wrote the first program, for the Analytical Engine.",
    "Babbage": "Charles Babbage designed the Analytical Engine and never finished it.",
    "Byron": "Lord Byron, the poet, was the father of Ada Lovelace.",
}


class Failing(HashingEmbedder):
    """An embedder whose service does not answer."""

    def embed_query(self, text: str) -> Vector:
        raise ModelUnavailable("the embedding service does not answer")

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        raise ModelUnavailable("the embedding service does not answer")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.waylore"


@pytest.fixture
def memory(path: Path) -> Iterator[Waylore]:
    with Waylore.open(path, embedder=EMBEDDER, extractor=None, clock=lambda: NOON) as memory:
        for title, text in TEXTS.items():
            memory.add(text, title=title, uri=title)
        yield memory


def test_search_explains_its_hits(memory: Waylore) -> None:
    found = memory.search("Who was the father of Ada?", top_k=2)
    best = found.hits[0]
    assert best.document.title == "Byron"
    assert [p.search for p in best.placements] == ["vector", "keyword"]
    assert best.score == pytest.approx(sum(p.share for p in best.placements))
    assert "keyword: rank 1" in str(best.explanation)
    assert found.missing == ()
    assert found.candidates == {"vector": 3, "keyword": 2}
    assert len(found.hits) == 2


def test_facts_are_found_and_forgotten_like_documents(memory: Waylore) -> None:
    [fact] = memory.add_facts([("Analytical Engine", "located_in", "London")])
    [same] = memory.add_facts([NewFact("analytical engine", "located in", "LONDON", weight=5, source="user_edit")])
    assert fact == same
    hit = memory.search("Where is the engine located?").hits[0]
    assert hit.passage.text == "analytical engine located in LONDON"
    assert [str(f) for f in memory.get(fact).facts] == ["analytical engine —located in→ LONDON"]
    assert memory.forget(fact).documents == (fact,)
    assert memory.stats().facts == 0


def test_facts_belong_to_the_text_that_states_them(memory: Waylore) -> None:
    document = memory.add(
        "Ada's mother was Annabella.\n\n" + "Filler. " * 200 + "\n\nHer tutor was De Morgan.",
        facts=[("Ada", "mother", "Annabella"), ("Ada", "tutor", "De Morgan")],
    )
    stored = memory.get(document)
    where = {f.predicate: f.passage_id for f in stored.facts}
    texts = {p.id: p.text for p in stored.passages}
    assert "Annabella" in texts[where["mother"]]
    assert "De Morgan" in texts[where["tutor"]]
    assert len(stored.passages) > 1


def test_adding_the_same_again_changes_nothing(memory: Waylore) -> None:
    before = memory.stats()
    memory.add(TEXTS["Byron"], title="Byron", uri="Byron")
    assert memory.stats() == before


def test_labels_and_metadata_filter_hits(memory: Waylore) -> None:
    memory.add("The engine's secret drawings are in the attic.", labels=["family"], metadata={"kind": "note"})
    everyone = memory.search("secret drawings attic", where=Filter(labels=frozenset()))
    family = memory.search("secret drawings attic", where=Filter(labels=frozenset({"family"})))
    notes = memory.search("engine", where=Filter(metadata={"kind": "note"}))
    assert all("attic" not in hit.passage.text for hit in everyone.hits)
    assert "attic" in family.hits[0].passage.text
    assert [hit.document.metadata for hit in notes.hits] == [{"kind": "note"}]


def test_get_hides_documents_without_access(memory: Waylore) -> None:
    secret = memory.add("A secret.", labels=["family"])
    with pytest.raises(NotFound):
        memory.get(secret, where=Filter(labels=frozenset()))
    assert memory.get(secret).document.labels == {"family"}


def test_search_without_embedder_reports_words_only(path: Path, memory: Waylore) -> None:
    with Waylore.open(path) as reader:
        found = reader.search("poet")
        assert [hit.document.title for hit in found.hits] == ["Byron"]
        assert "no embedder" in found.missing[0]
        with pytest.raises(ModelMismatch, match="hashing-64"):
            reader.add("New text.")


def test_search_uses_words_if_the_embedder_fails(path: Path, memory: Waylore) -> None:
    with Waylore.open(path, embedder=Failing(64, quiet=True)) as reader:
        found = reader.search("poet")
        assert [hit.document.title for hit in found.hits] == ["Byron"]
        assert found.missing == ("vector: the embedding service does not answer",)
        with pytest.raises(ModelUnavailable):
            reader.add("New text.")


def test_other_model_is_refused_until_reembed(path: Path, memory: Waylore) -> None:
    memory.add_facts([("Ada", "wrote", "notes")])
    memory.close()
    other = HashingEmbedder(96, quiet=True)
    with pytest.raises(ModelMismatch, match=r"hashing-64.*reembed"):
        Waylore.open(path, embedder=other)
    progress: list[int] = []
    made = Waylore.reembed(path, embedder=other, progress=progress.append)
    assert progress[-1] == made
    with Waylore.open(path, embedder=other) as again:
        assert again.search("father of Ada").hits[0].document.title == "Byron"
        assert again.stats().model == "hashing-96"


def test_reembed_resumes_after_an_interruption(path: Path, memory: Waylore) -> None:
    for i in range(300):
        memory.add(f"Note {i} about engine part {i}.")
    memory.close()
    other = HashingEmbedder(96, quiet=True)
    done: list[int] = []

    def interrupt(count: int) -> None:
        done.append(count)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Waylore.reembed(path, embedder=other, progress=interrupt)
    with Waylore.open(path, embedder=EMBEDDER) as old:
        assert old.search("engine part 7").missing == ()
    assert Waylore.reembed(path, embedder=other) == 303 - done[0]


def test_reembed_with_the_same_model_does_nothing(path: Path, memory: Waylore) -> None:
    assert Waylore.reembed(path, embedder=EMBEDDER) == 0


def test_labels_may_be_any_iterable(memory: Waylore) -> None:
    document = memory.add("A generated permission.", labels=(label for label in ["family"]))
    assert memory.get(document).document.labels == {"family"}


def test_reembed_adds_vectors_to_a_collection_without(path: Path) -> None:
    with Waylore.open(path) as bare:
        bare.add("A text about boats.", facts=[("boat", "has", "sail")])
    with pytest.raises(ModelMismatch, match="no model"):
        Waylore.open(path, embedder=EMBEDDER)
    Waylore.reembed(path, embedder=EMBEDDER)
    with Waylore.open(path, embedder=EMBEDDER) as memory:
        assert memory.search("boats").hits[0].placements[0].search == "vector"


def test_export_contains_everything(tmp_path: Path, memory: Waylore) -> None:
    memory.add_facts([("Ada", "wrote", "notes"), NewFact("Ada", "born", "1815", is_value=True)], labels=["family"])
    assert memory.export(tmp_path / "a.jsonl") == 5
    with Waylore.open(tmp_path / "copy.waylore", embedder=EMBEDDER, clock=lambda: NOON) as copy:
        assert copy.import_(tmp_path / "a.jsonl").written == 5
        assert copy.import_(tmp_path / "a.jsonl").written == 0
        copy.export(tmp_path / "b.jsonl")
        assert copy.search("father of Ada").hits == memory.search("father of Ada").hits
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


def test_failed_export_keeps_the_one_before(tmp_path: Path, memory: Waylore) -> None:
    def fail(_: int) -> None:
        raise KeyboardInterrupt

    memory.export(tmp_path / "a.jsonl")
    before = (tmp_path / "a.jsonl").read_bytes()
    memory.add("A text that is not exported.")
    with pytest.raises(KeyboardInterrupt):
        memory.export(tmp_path / "a.jsonl", progress=fail)
    assert (tmp_path / "a.jsonl").read_bytes() == before
    assert not list(tmp_path.glob("*.part"))


def test_import_without_vectors_is_embedded(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "words.waylore") as words:
        words.add("A text about boats.")
        words.export(tmp_path / "words.jsonl")
    with Waylore.open(tmp_path / "copy.waylore", embedder=EMBEDDER) as copy:
        copy.import_(tmp_path / "words.jsonl")
        copy.add("A text about sails.")
        assert copy.stats().model == EMBEDDER.name
        assert copy.search("boats").missing == ()


def test_import_of_another_model_is_refused_before_writing(tmp_path: Path, memory: Waylore) -> None:
    memory.export(tmp_path / "a.jsonl")
    with Waylore.open(tmp_path / "copy.waylore", embedder=HashingEmbedder(96, quiet=True)) as copy:
        with pytest.raises(ModelMismatch, match=r"vectors of hashing-64, not of hashing-96"):
            copy.import_(tmp_path / "a.jsonl")
        assert copy.stats().documents == 0
        copy.add("A text about sails.")


def test_recipe_may_have_lists(memory: Waylore) -> None:
    ways: Any = ["names"]
    recipe = replace(CHAIN, linking=replace(CHAIN.linking, ways=ways))
    assert memory.search("father of Ada", method=recipe).hits == memory.search("father of Ada", method="chain").hits


def test_home_folder_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    Waylore.open("~/mine.waylore").close()
    assert (tmp_path / "mine.waylore").exists()


def test_collections_of_one_file_are_separate(path: Path, memory: Waylore) -> None:
    with Waylore.open(path, collection="other", embedder=HashingEmbedder(32, quiet=True)) as other:
        assert other.search("Ada").hits == ()
        other.add("Ada is also a town.")
        assert len(other.search("Ada").hits) == 1
    assert len(memory.search("Ada", top_k=9).hits) == 3


def test_counting_uses_does_not_change_the_version(path: Path) -> None:
    with Waylore.open(path, embedder=EMBEDDER, clock=lambda: NOON) as memory:
        memory.add("Ada wrote notes.", facts=[("Ada", "wrote", "notes")])
        version = memory.stats().version
        memory.search("notes")
    with Waylore.open(path, embedder=EMBEDDER) as memory:
        assert memory.stats().version == version


def test_async_methods_return_the_same(path: Path) -> None:
    async def talk() -> list[str]:
        with Waylore.open(path, embedder=EMBEDDER) as memory:
            first = await memory.aadd("Ada wrote notes.")
            await memory.aadd_facts([("Ada", "liked", "machines")])
            found = await asyncio.gather(*(memory.asearch("Ada") for _ in range(8)))
            assert (await memory.aget(first)).document.id == first
            [passage] = (await memory.aget(first)).passages
            assert (await memory.aget_passage(passage.id))[1].id == first
            await memory.aforget(first)
            return [hit.passage.text for hit in (await memory.asearch("Ada")).hits] + [str(len(f.hits)) for f in found]

    assert asyncio.run(talk()) == ["Ada liked machines", *["2"] * 8]


def test_async_export_and_reembedding_are_as_the_synchronous_ones(path: Path) -> None:
    with Waylore.open(path, embedder=EMBEDDER) as memory:
        for number in range(250):  # more than a thread reads at a time
            memory.add(f"Ada wrote note {number}.")
        lines = list(memory.export_lines())

        async def export() -> list[str]:
            async for _ in memory.aexport_lines():
                break  # which ends the export
            return [line async for line in memory.aexport_lines()]

        assert asyncio.run(export()) == lines
    other = HashingEmbedder(96, quiet=True)
    changed = asyncio.run(Waylore.areembed(path, embedder=other))
    assert changed > 250
    assert Waylore.reembed(path, embedder=other) == 0
    with Waylore.open(path, embedder=other) as memory:
        assert memory.stats().model == other.name


def test_memory_url_works_in_threads_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    async def talk() -> list[int]:
        with Waylore.open(":memory:", embedder=EMBEDDER) as memory:
            memory.add("Ada wrote notes.")
            await memory.aadd("Ada liked machines.")
            return [len(found) for found in await asyncio.gather(*(memory.asearch("Ada") for _ in range(8)))]

    assert asyncio.run(talk()) == [2] * 8
    assert (list(tmp_path.iterdir()), caplog.records) == ([], [])


def test_immutable_file_is_searched_without_warnings(
    path: Path, memory: Waylore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    memory.add_facts([("Ada", "knew", "Babbage")])
    memory.close()
    monkeypatch.setattr("waylore.store.sqlite.file._may_write", lambda _: False)
    with Waylore.open(path, embedder=EMBEDDER) as reader:
        assert reader.search("Ada").hits
        assert "knew" in {fact.predicate for fact in reader.facts("Ada")}
        assert "knew" in {each.assertion.fact.predicate for each in reader.related("Ada")}
        assert reader.stats().documents == len(TEXTS) + 1
        with pytest.raises(Forbidden, match=f"{path.name} is read-only"):
            reader.add("Ada wrote letters.")
    assert caplog.records == []


def test_get_passage_respects_labels(memory: Waylore) -> None:
    id_ = memory.add("Ada earns ten crowns.", labels=["office"])
    [passage] = memory.get(id_).passages
    found, document = memory.get_passage(passage.id, where=Filter(labels=frozenset({"office"})))
    assert (found.text, document.id) == (passage.text, id_)
    for hidden, where in ((passage.id, Filter(labels=frozenset({"crew"}))), ("nobody", Filter())):
        with pytest.raises(NotFound, match=f"no passage {hidden};"):
            memory.get_passage(hidden, where=where)


def test_get_passage_completes_digits_that_one_visible_passage_has(tmp_path: Path) -> None:
    ids = {"abcdef01" * 4: "", "abcdef0123456789" * 2: "office", "abcdef02" * 4: ""}
    pages = [
        IndexedDocument(
            Document(f"{n}" * 32, labels=frozenset({label} - {""})), (Passage(id_, f"{n}" * 32, f"Text {n}."),)
        )
        for n, (id_, label) in enumerate(ids.items())
    ]
    public = Filter(labels=frozenset())
    with Waylore.open(tmp_path / "marks.waylore") as memory:
        memory._store.write(pages, author=OWNER, model=None)
        assert memory.get_passage("abcdef01", where=public)[0].text == "Text 0."
        assert memory.get_passage("abcdef0123")[0].text == "Text 1."
        with pytest.raises(ArgumentError, match="several passages have an id that begins with abcdef01;"):
            memory.get_passage("abcdef01")
        for hidden in ("abcdef0123", "abcdef0", "abcdef03", "abcdef0%", "ABCDEF02"):
            with pytest.raises(NotFound, match=f"no passage {hidden};"):
                memory.get_passage(hidden, where=public)


@pytest.mark.parametrize("text", ["", "  \n\t "])
def test_empty_texts_and_queries_are_refused(memory: Waylore, text: str) -> None:
    with pytest.raises(ArgumentError, match="empty"):
        memory.add(text)
    with pytest.raises(ArgumentError, match="empty"):
        memory.search(text)


def test_lone_surrogates_are_refused(memory: Waylore) -> None:
    before = memory.stats()
    with pytest.raises(ArgumentError, match="text must be valid Unicode"):
        memory.add("A broken emoji: \ud83d")
    assert memory.stats() == before


def test_top_k_may_exceed_the_default_pool(path: Path) -> None:
    with Waylore.open(path, embedder=EMBEDDER) as memory:
        facts = [(f"Part {i}", "belongs to", "the engine") for i in range(2_300)]
        memory.add_facts(facts)
        assert len(memory.search("engine", top_k=2_300).hits) == 2_300


def test_impossible_calls_name_a_remedy(tmp_path: Path, memory: Waylore) -> None:
    with pytest.raises(ArgumentError, match="top_k must be a whole number from 1"):
        memory.search("Ada", top_k=0)
    with pytest.raises(ArgumentError, match="use auto, chain, hybrid"):
        memory.search("Ada", method="magic")
    with pytest.raises(ConfigError, match="sqlite:///"):
        Waylore.open("mysql://somewhere")
    with pytest.raises(StoreUnavailable, match="folder"):
        Waylore.open(tmp_path / "nowhere" / "x.waylore")
    (tmp_path / "text.waylore").write_text("this is no database, but it is long enough to be looked at" * 20)
    with pytest.raises(StoreUnavailable, match="Waylore file"):
        Waylore.open(tmp_path / "text.waylore")


def test_embedder_with_a_wrong_dimension_is_refused(path: Path) -> None:
    class Liar(HashingEmbedder):
        def embed_passages(self, texts: Sequence[str]) -> Vectors:
            return np.ones((len(texts), 3), dtype=np.float32)

    with Waylore.open(path, embedder=Liar(64, quiet=True)) as memory, pytest.raises(Exception, match="shape"):
        memory.add("Anything.")


def test_only_passage_has_a_score(path: Path) -> None:
    """A passage without competitors still has shares that add up to its score."""
    with Waylore.open(path, embedder=EMBEDDER) as memory:
        memory.add("Ada knows Byron.", facts=[("Ada", "knows", "Byron")])
        [hit] = memory.search("Whom does Ada know?").hits
    assert 0.0 < hit.score < 1.0
    assert hit.score == pytest.approx(sum(p.share for p in hit.placements), abs=1e-5)


def test_blank_statement_counts_as_missing(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore") as memory:
        [document] = memory.add_facts([NewFact("Ada", "knows", "Bo", statement="\x0b ")])
        assert memory.get(document).passages[0].text == "Ada knows Bo"


class SecretCounter(SqliteStore):
    """Counts how often its secret is read."""

    reads = 0

    def secret(self) -> bytes:
        self.reads += 1
        return super().secret()


def test_views_of_a_collection_read_its_secret_once(tmp_path: Path) -> None:
    store = SecretCounter(tmp_path / "memory.waylore")
    with Waylore(store) as memory:
        memory.add("Mara owns the login.")
        marks = {memory.as_author(Author(f"key:{n}")).make_fence("Mara").mark for n in range(3)}
    assert len(marks) == 1
    assert store.reads == 1

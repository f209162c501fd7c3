"""An agent's memories in a real file: recalled texts are not stored again, corrections are."""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore import Filter, NewFact, Waylore
from waylore.protocols import Embedder
from waylore.providers.embedders.hashing import HashingEmbedder

EMBEDDER = HashingEmbedder(64, quiet=True)
HALLUCINATION = "The user John Doe works at Google as a senior engineer."
OTHERS = [f"The user has {n} boxes of tea in room {n * 7}, next to the lift." for n in range(2, 40)]


def count_rows(memory: Waylore) -> tuple[int, int, int]:
    stats = memory.stats()
    return stats.documents, stats.passages, stats.facts


def count_uses(path: Path, kind: str, like: str) -> int:
    """Return how often the passages or facts with such a text were used."""
    owner = {
        "passage": "passages o ON o.row = u.row AND o.text",
        "fact": "assertions a ON a.fact = u.row JOIN passages o ON o.row = a.passage AND o.text",
    }
    with closing(apsw.Connection(str(path))) as db:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        query = f"SELECT total(access_count) FROM usage u JOIN {owner[kind]} LIKE ? WHERE u.kind = ?"
        return int(db.execute(query, (like, kind)).get)


def remember(memory: Waylore, text: str, labels: Sequence[str] = ()) -> str:
    return memory.add(text, source="conversation", labels=labels)


EDITS: list[Callable[[str], str]] = [
    lambda text: text,
    str.upper,
    lambda text: f"- {text}",
    lambda text: f"> {text.replace(' works', chr(10) + '> works')}",
    lambda text: f"**Memory:** {text}",
    lambda text: f"You told me that {text[0].lower()}{text[1:]}",
    lambda text: text.replace("The user", "User").replace(".", "!"),
    lambda text: f"“{text}” [1]",
    lambda text: f"Here is what I found:\n\n1. {text}\n\nThanks!",
    lambda text: text.replace(" ", "  ").rstrip("."),
]


@pytest.mark.parametrize(("embedder", "copies"), [(EMBEDDER, 668), (None, 66)], ids=["embedder", "words"])
def test_memory_recalled_668_times_stays_one(tmp_path: Path, embedder: Embedder | None, copies: int) -> None:
    """The case of mem0: recalled texts were extracted and stored again, until one was found 668 times."""
    path = tmp_path / "a.waylore"
    with Waylore.open(path, embedder=embedder) as memory:
        for text in (*OTHERS, HALLUCINATION):
            remember(memory, text)
        (first,) = {remember(memory, HALLUCINATION)}
        before, used = count_rows(memory), count_uses(path, "passage", HALLUCINATION)
        for turn in range(copies):
            found = memory.search("Where does John Doe work?", record_use=False, method="hybrid", top_k=3)
            text = next(h.passage.text for h in found.hits if "John" in h.passage.text)
            assert remember(memory, EDITS[turn % len(EDITS)](text)) == first
        assert count_rows(memory) == before
        assert count_uses(path, "passage", HALLUCINATION) == used + copies


def test_repetition_is_recognised_after_restart(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER, extractor=None) as memory:
        first = remember(memory, HALLUCINATION)
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER, extractor=None) as memory:
        assert remember(memory, HALLUCINATION.upper()) == first
        assert count_rows(memory) == (1, 1, 0)


@pytest.mark.parametrize("style", ["passages", "graph", "narrative"])
def test_returned_context_is_recognised(tmp_path: Path, style: str) -> None:
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER) as memory:
        lives = [("Ada", "lives in", "Rome"), ("Ada", "plays", "cello")]
        memory.add(
            "Ada lives in Rome with two cats. She plays the cello.",
            title="Ada",
            uri="file:///a.md",
            facts=lives,
        )
        memory.add("Rome has been the capital of Italy since 1871.", facts=[("Rome", "capital of", "Italy")])
        before = count_rows(memory)
        text = memory.context(memory.search("Where does Ada live?"), layout=style).text  # type: ignore[arg-type]
        assert "two cats" in text
        remember(memory, text)
        assert count_rows(memory) == before
        id_ = remember(memory, f"{text}\n\nOn Friday a third cat came to live with her.")
        assert [p.text for p in memory.get(id_).passages] == ["On Friday a third cat came to live with her."]
        assert count_rows(memory) == (before[0] + 1, before[1] + 1, before[2])


def test_joined_hits_are_recognised(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore") as memory:
        for text in OTHERS:
            remember(memory, text)
        before = count_rows(memory)
        for joint in ("\n", " ", "\n\n", "\n- "):
            remember(memory, joint.join(OTHERS))
        assert count_rows(memory) == before


@pytest.mark.parametrize(
    "correction",
    [
        "The user John Doe no longer works at Google as a senior engineer.",
        "The user John Doe works at Apple as a senior engineer, not at Google.",
        "The user Jane Doe works at Google as a senior engineer.",
        "The user John Doe worked at Google as a senior engineer.",
        "It is not true that the user John Doe works at Google as a senior engineer.",
        f"{HALLUCINATION} That is wrong.",
    ],
)
def test_correction_is_stored(tmp_path: Path, correction: str) -> None:
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER) as memory:
        remember(memory, HALLUCINATION)
        id_ = remember(memory, correction)
        assert [p.text for p in memory.get(id_).passages] == [correction]
        assert count_rows(memory)[0] == 2


def test_memory_is_known_only_to_the_same_readers(tmp_path: Path) -> None:
    """A caller learns nothing of a document it may not see: not by an id, nor by a row that is missing."""
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER) as memory:
        secret = remember(memory, HALLUCINATION, ["spies"])
        public = remember(memory, HALLUCINATION.upper())
        assert public != secret
        assert remember(memory, f"- {HALLUCINATION}", ["spies"]) == secret
        assert remember(memory, f"- {HALLUCINATION}") == public
        assert len(memory.search("John Doe", where=Filter(labels=frozenset())).hits) == 1


def test_memory_is_found_by_each_of_its_filters(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER) as memory:
        texts = {"ada": "I like green tea.", "bob": "i like green tea", "cem": "- I LIKE GREEN TEA"}
        for who, text in texts.items():
            memory.add(text, source="conversation", metadata={"who": who})
        for who, text in texts.items():
            found = memory.search("green tea", where=Filter(metadata={"who": who}))
            assert [h.passage.text for h in found.hits] == [text]


def test_files_and_texts_with_uri_are_not_deduplicated(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER) as memory:
        remember(memory, HALLUCINATION)
        memory.add(HALLUCINATION.upper(), source="file")
        memory.add(HALLUCINATION, source="conversation", uri="chat/1")
        assert count_rows(memory)[0] == 3


def test_repeated_text_may_bring_a_new_fact(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER, extractor=None) as memory:
        first = remember(memory, HALLUCINATION)
        works = ("John Doe", "works at", "Google")
        for _ in range(3):
            assert memory.add(HALLUCINATION, source="conversation", facts=[works]) == first
        assert count_rows(memory) == (2, 2, 1)


def test_repeated_fact_is_counted_and_not_stored(tmp_path: Path) -> None:
    path = tmp_path / "a.waylore"
    with Waylore.open(path, embedder=EMBEDDER) as memory:
        memory.add("Ada lives in Rome.", facts=[("Ada", "lives in", "Rome")])
        before = count_rows(memory)
        variants = [("Ada", "lives in", "Rome"), ("ada", "Lives_in", "ROME")]
        for variant in variants * 3:
            memory.add_facts([variant], source="conversation")
        assert count_rows(memory) == before
        assert count_uses(path, "fact", "%Rome%") == 6
        (own,) = memory.add_facts([("Ada", "plays", "cello")])
        assert memory.add_facts([("Ada", "plays", "cello")]) == (own,)
        assert count_uses(path, "fact", "%cello%") == 1
        assert memory.add_facts([("ada", "plays", "Cello")], source="conversation") == (own,)
        assert count_uses(path, "fact", "%cello%") == 2


def test_corrected_fact_is_stored(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER) as memory:
        lives = NewFact("Ada", "lives in", "Rome", source="user_edit")
        (first,) = memory.add_facts([lives])
        (again,) = memory.add_facts([NewFact("Ada", "lives in", "Rome", source="user_edit", status="retracted")])
        assert again == first
        assert memory.get(first).facts[0].status == "retracted"
        memory.add_facts([("Ada", "lives in", "Milan")])
        assert count_rows(memory)[2] == 2


sentences = st.lists(
    st.sampled_from("Ada Bob likes tea 3 not the in Rome 東京 Łódź cats, C++ is -5 a!".split()),
    min_size=1,
    max_size=12,
).map(lambda words: " ".join(words) + ".")
texts = st.lists(sentences, min_size=1, max_size=30).map(" ".join)


@given(st.lists(st.tuples(texts, st.sampled_from(["file", "conversation"])), min_size=1, max_size=6), sentences)
def test_adding_any_hit_back_never_adds_a_row(added: list[tuple[str, str]], asked: str) -> None:
    with (
        tempfile.TemporaryDirectory() as name,
        Waylore.open(Path(name) / "a.waylore", embedder=EMBEDDER) as memory,
    ):
        for text, source in added:
            memory.add(text, source=source)  # type: ignore[arg-type]
        before = count_rows(memory)
        for hit in memory.search(asked).hits:
            remember(memory, hit.passage.text)
            remember(memory, f"> {hit.passage.text}")
        assert count_rows(memory) == before

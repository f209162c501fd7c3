"""Memories of an agent on a real file: what was recalled does not come back as new, what was corrected does."""

import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waylore import Claim, Filter, Waylore
from waylore.protocols import Embedder
from waylore.providers.embedders.hashing import HashingEmbedder

EMBEDDER = HashingEmbedder(64, quiet=True)
HALLUCINATION = "The user John Doe works at Google as a senior engineer."
OTHERS = [f"The user has {n} boxes of tea in room {n * 7}, next to the lift." for n in range(2, 40)]
COPIES = 668


def rows(memory: Waylore) -> tuple[int, int, int]:
    stats = memory.stats()
    return stats.documents, stats.passages, stats.facts


def uses(path: Path, kind: str, like: str) -> int:
    """How often the passages or facts whose text is like this were used."""
    owner = {
        "passage": "passages o ON o.row = u.row AND o.text",
        "fact": "supports o ON o.fact = u.row AND o.object",
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


@pytest.mark.parametrize("embedder", [EMBEDDER, None], ids=["embedder", "words"])
def test_a_hallucination_that_is_recalled_668_times_stays_one(
    tmp_path: Path, embedder: Embedder | None
) -> None:
    """The case of mem0: what was recalled was extracted and stored again, until it was found 668 times."""
    path = tmp_path / "a.waylore"
    with Waylore.open(path, embedder=embedder) as memory:
        for text in (*OTHERS, HALLUCINATION):
            remember(memory, text)
        (first,) = {remember(memory, HALLUCINATION)}
        before, used = rows(memory), uses(path, "passage", HALLUCINATION)
        for turn in range(COPIES):
            found = memory.search("Where does John Doe work?", count_use=False, method="hybrid", top_k=3)
            text = next(h.passage.text for h in found.hits if "John" in h.passage.text)
            assert remember(memory, EDITS[turn % len(EDITS)](text)) == first
        assert rows(memory) == before
        assert uses(path, "passage", HALLUCINATION) == used + COPIES


def test_it_is_recognised_by_another_process_after_a_restart(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER, extractor=None) as memory:
        first = remember(memory, HALLUCINATION)
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER, extractor=None) as memory:
        assert remember(memory, HALLUCINATION.upper()) == first
        assert rows(memory) == (1, 1, 0)


@pytest.mark.parametrize("style", ["passages", "graph", "narrative"])
def test_a_context_that_comes_back_is_recognised(tmp_path: Path, style: str) -> None:
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER) as memory:
        lives = [("Ada", "lives in", "Rome"), ("Ada", "plays", "cello")]
        memory.add(
            "Ada lives in Rome with two cats. She plays the cello.",
            title="Ada",
            uri="file:///a.md",
            facts=lives,
        )
        memory.add("Rome has been the capital of Italy since 1871.", facts=[("Rome", "capital of", "Italy")])
        before = rows(memory)
        text = memory.context(memory.search("Where does Ada live?"), style=style).text  # type: ignore[arg-type]
        assert "two cats" in text
        remember(memory, text)
        assert rows(memory) == before
        id_ = remember(memory, f"{text}\n\nOn Friday a third cat came to live with her.")
        assert [p.text for p in memory.get(id_).passages] == ["On Friday a third cat came to live with her."]
        assert rows(memory) == (before[0] + 1, before[1] + 1, before[2])


def test_many_hits_joined_are_recognised(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore") as memory:
        for text in OTHERS:
            remember(memory, text)
        before = rows(memory)
        for joint in ("\n", " ", "\n\n", "\n- "):
            remember(memory, joint.join(OTHERS))
        assert rows(memory) == before


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
def test_a_correction_is_stored(tmp_path: Path, correction: str) -> None:
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER) as memory:
        remember(memory, HALLUCINATION)
        id_ = remember(memory, correction)
        assert [p.text for p in memory.get(id_).passages] == [correction]
        assert rows(memory)[0] == 2


def test_only_the_same_readers_have_the_same_memory(tmp_path: Path) -> None:
    """Whoever may not see a document learns nothing of it: not by an identity, nor by a row that is missing."""
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER) as memory:
        secret = remember(memory, HALLUCINATION, ["spies"])
        public = remember(memory, HALLUCINATION.upper())
        assert public != secret
        assert remember(memory, f"- {HALLUCINATION}", ["spies"]) == secret
        assert remember(memory, f"- {HALLUCINATION}") == public
        assert len(memory.search("John Doe", where=Filter(labels=frozenset())).hits) == 1


def test_a_memory_is_found_by_every_filter_that_it_was_given(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER) as memory:
        said = {"ada": "I like green tea.", "bob": "i like green tea", "cem": "- I LIKE GREEN TEA"}
        for who, text in said.items():
            memory.add(text, source="conversation", metadata={"who": who})
        for who, text in said.items():
            found = memory.search("green tea", where=Filter(metadata={"who": who}))
            assert [h.passage.text for h in found.hits] == [text]


def test_files_and_what_has_an_address_are_left_alone(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER) as memory:
        remember(memory, HALLUCINATION)
        memory.add(HALLUCINATION.upper(), source="file")
        memory.add(HALLUCINATION, source="conversation", uri="chat/1")
        assert rows(memory)[0] == 3


def test_a_repeat_may_bring_a_new_fact(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER, extractor=None) as memory:
        first = remember(memory, HALLUCINATION)
        works = ("John Doe", "works at", "Google")
        for _ in range(3):
            assert memory.add(HALLUCINATION, source="conversation", facts=[works]) == first
        assert rows(memory) == (2, 2, 1)


def test_a_fact_that_repeats_is_used_and_not_stored(tmp_path: Path) -> None:
    path = tmp_path / "a.waylore"
    with Waylore.open(path, embedder=EMBEDDER) as memory:
        memory.add("Ada lives in Rome.", facts=[("Ada", "lives in", "Rome")])
        before = rows(memory)
        variants = [("Ada", "lives in", "Rome"), ("ada", "Lives_in", "ROME")]
        for variant in variants * 3:
            memory.add_facts([variant], source="conversation")
        assert rows(memory) == before
        assert uses(path, "fact", "Rome") == 6
        (own,) = memory.add_facts([("Ada", "plays", "cello")])
        assert memory.add_facts([("Ada", "plays", "cello")]) == (own,)
        assert uses(path, "fact", "cello") == 1
        assert memory.add_facts([("ada", "plays", "Cello")], source="conversation") == (own,)
        assert uses(path, "fact", "cello") == 2


def test_a_fact_that_is_corrected_is_stored(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER) as memory:
        lives = Claim("Ada", "lives in", "Rome", source="user_edit")
        (first,) = memory.add_facts([lives])
        (again,) = memory.add_facts([Claim("Ada", "lives in", "Rome", source="user_edit", status="retracted")])
        assert again == first
        assert memory.get(first).facts[0].status == "retracted"
        memory.add_facts([("Ada", "lives in", "Milan")])
        assert rows(memory)[2] == 2


sentences = st.lists(
    st.sampled_from("Ada Bob likes tea 3 not the in Rome 東京 Łódź cats, C++ is -5 a!".split()),
    min_size=1,
    max_size=12,
).map(lambda words: " ".join(words) + ".")
texts = st.lists(sentences, min_size=1, max_size=30).map(" ".join)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(texts, st.sampled_from(["file", "conversation"])), min_size=1, max_size=6), sentences)
def test_adding_any_hit_back_never_adds_a_row(added: list[tuple[str, str]], asked: str) -> None:
    with (
        tempfile.TemporaryDirectory() as name,
        Waylore.open(Path(name) / "a.waylore", embedder=EMBEDDER) as memory,
    ):
        for text, source in added:
            memory.add(text, source=source)  # type: ignore[arg-type]
        before = rows(memory)
        for hit in memory.search(asked).hits:
            remember(memory, hit.passage.text)
            remember(memory, f"> {hit.passage.text}")
        assert rows(memory) == before

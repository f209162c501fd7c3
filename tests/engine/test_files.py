"""Folders are added: new files are added, changed ones replaced, vanished ones forgotten with `prune`."""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from waylore import Filter, Waylore
from waylore.indexing.blocks import Limits, Reading, Skipped
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.indexing.files import add
from waylore.indexing.files.progress import Progress
from waylore.protocols import Extraction
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.types.knowledge import Document, Passage

EMBEDDER = HashingEmbedder(64, quiet=True)
THEN = datetime(2024, 5, 1, tzinfo=UTC)
LOGIN = "---\nowner: Mara\n---\n# Login\n\nLogin checks passwords. It asks Keycloak for tokens.\n"


def open_memory(path: Path) -> Waylore:
    return Waylore.open(path, embedder=EMBEDDER, clock=lambda: THEN)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "login.md").write_text(LOGIN)
    (notes / "people.csv").write_text("name,team,text\nMara,Payments,likes tea\nKofi,Search,likes dogs\n")
    return notes


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Waylore]:
    with open_memory(tmp_path / "notes.waylore") as waylore:
        yield waylore


def list_statements(memory: Waylore, document: str) -> set[str]:
    return {str(fact) for fact in memory.get(document).facts}


def list_uris(memory: Waylore) -> list[str]:
    return [document.uri for document in memory.documents()]


def test_declarations_and_sentences_become_facts(memory: Waylore, folder: Path) -> None:
    added = memory.add_files(folder, root=folder)
    assert (added.files, added.documents, added.passages, added.skipped) == (2, 3, 3, ())
    assert list_uris(memory) == ["login.md", "people.csv#row=2", "people.csv#row=3"]
    login, mara, _ = memory.documents()
    assert list_statements(memory, login.id) == {"Login —owner→ Mara", "Login —asks→ Keycloak"}
    assert list_statements(memory, mara.id) == {"Mara —team→ Payments"}
    found = memory.search("Which team has the owner of Login?")
    assert ("people.csv#row=2", "Login —owner→ Mara → this passage") in {
        (hit.document.uri, str(hit.path)) for hit in found.hits
    }


@pytest.mark.parametrize("content", ["", "  \n", "---\n---\n", "<!-- nothing -->\n"])
def test_emptied_file_is_forgotten(memory: Waylore, folder: Path, content: str) -> None:
    memory.add_files(folder, root=folder)
    (folder / "login.md").write_text(content)
    for forgotten in (1, 0):
        again = memory.add_files(folder, root=folder)
        assert (again.forgotten, [skipped.uri for skipped in again.skipped]) == (forgotten, ["login.md"])
        assert list_uris(memory) == ["people.csv#row=2", "people.csv#row=3"]


def test_file_that_cannot_be_read_keeps_its_documents(memory: Waylore, folder: Path) -> None:
    memory.add_files(folder, root=folder)
    (folder / "login.md").write_bytes(b"\x00")
    again = memory.add_files(folder, root=folder)
    assert (again.forgotten, [skipped.uri for skipped in again.skipped]) == (0, ["login.md"])
    assert "login.md" in list_uris(memory)


def test_unchanged_files_are_not_read_again(memory: Waylore, folder: Path) -> None:
    memory.add_files(folder, root=folder)
    version = memory.stats().version
    os.utime(folder / "login.md")
    again = memory.add_files(folder, root=folder)
    assert (again.unchanged, again.documents, again.forgotten) == (2, 0, 0)
    assert memory.stats().version == version


def test_unchanged_files_take_a_fifth_of_the_time_of_new_ones(memory: Waylore, folder: Path) -> None:
    """Compare processor times; it is a fifteenth if nothing else runs. Collecting garbage may slow down one run."""
    for number in range(1_000):
        (folder / f"{number}.md").write_text(f"# Note {number}\n\nMara wrote note {number} for Kofi.\n")
    began = time.process_time()
    memory.add_files(folder)
    adding, comparing = time.process_time() - began, []
    for _ in range(3):
        began = time.process_time()
        assert memory.add_files(folder).unchanged == 1_002
        comparing.append(time.process_time() - began)
    assert min(comparing) < adding / 5


def test_changed_file_replaces_its_documents(memory: Waylore, folder: Path) -> None:
    memory.add_files(folder, root=folder)
    (folder / "login.md").write_text("# Login\n\nLogin needs Redis now.\n")
    (folder / "people.csv").write_text("name,team,text\nMara,Payments,likes tea\n")
    again = memory.add_files(folder, root=folder)
    assert (again.documents, again.forgotten, again.unchanged) == (1, 1, 0)
    assert list_uris(memory) == ["login.md", "people.csv#row=2"]
    assert list_statements(memory, memory.documents()[0].id) == {"Login —needs→ Redis"}
    assert not memory.search("Kofi").entities


def test_vanished_file_is_forgotten_only_with_prune(memory: Waylore, folder: Path) -> None:
    memory.add("Added by hand.", uri="notes/hand.md")
    memory.add_files(folder, root=folder.parent)
    (folder / "people.csv").unlink()
    assert memory.add_files(folder, root=folder.parent).forgotten == 0
    assert memory.add_files(folder, root=folder.parent, prune=True).forgotten == 2
    assert list_uris(memory) == ["notes/hand.md", "notes/login.md"]


def test_pruning_leaves_other_places_alone(memory: Waylore, folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.md").write_text("# Other\n\nAnother place.\n")
    memory.add_files(other, root=other)
    memory.add_files(folder, root=folder, prune=True)
    assert "a.md" in list_uris(memory)
    (other / "a.md").unlink()
    assert memory.add_files(other, root=other, prune=True).forgotten == 1
    assert "login.md" in list_uris(memory)


def test_forgotten_document_returns_when_file_is_added_again(memory: Waylore, folder: Path) -> None:
    memory.add_files(folder, root=folder)
    memory.forget(memory.documents()[0].id)
    assert memory.add_files(folder, root=folder).documents == 1


def test_other_labels_rewrite_documents(memory: Waylore, folder: Path) -> None:
    memory.add_files(folder, root=folder)
    assert memory.add_files(folder, root=folder, labels=["staff"], metadata={"team": "all"}).documents == 3
    assert memory.documents(where=Filter(labels=frozenset())) == ()
    assert {d.metadata["team"] for d in memory.documents()} == {"all"}


def test_add_counts_facts_as_stats_does(memory: Waylore, tmp_path: Path) -> None:
    """T41: a fact counts once, and a sentence that only names two things is none."""
    leads = "Mara Lind leads the Platform team."
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "team.md").write_text(f"# Team\n\n{leads} Mara Lind and Kofi Mensah sail.\n")
    (tmp_path / "new" / "again.md").write_text(f"# Again\n\n{leads}\n")
    before = memory.stats().facts
    assert memory.add_files(tmp_path / "new").facts == memory.stats().facts - before > 0


def test_unreadable_files_are_reported_in_every_run(memory: Waylore, folder: Path) -> None:
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and then nothing")
    (folder / "half.jsonl").write_text('{"text": "whole"}\n{"text": \n')
    for documents in (4, 0):
        added = memory.add_files(folder, root=folder)
        assert added.documents == documents
        assert [r.uri for r in added.skipped] == ["broken.pdf", "half.jsonl#line=2"]
    (folder / "half.jsonl").unlink()
    (folder / "broken.pdf").write_text("")
    assert memory.add_files(folder, root=folder, prune=True).forgotten == 1


def test_file_that_becomes_unreadable_keeps_documents(memory: Waylore, folder: Path) -> None:
    memory.add_files(folder, root=folder)
    (folder / "login.md").write_bytes(b"\x00\x01")
    added = memory.add_files(folder, root=folder, prune=True)
    assert (added.forgotten, len(added.skipped)) == (0, 1)
    assert "login.md" in list_uris(memory)


def test_progress_reaches_the_end(memory: Waylore, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(add, "BATCH_ROWS", 1)
    seen: list[Progress] = []
    memory.add_files(folder, progress=seen.append)
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert (seen[-1].files, seen[-1].done, seen[-1].left) == (2, 1.0, 0.0)
    assert "100%  2/2 files  3 passages" in str(seen[-1])


def test_next_run_continues_after_ctrl_c(
    memory: Waylore, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(add, "BATCH_ROWS", 1)

    def interrupt(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.add_files(folder, root=folder, progress=interrupt)
    memory.add_files(folder, root=folder)
    with open_memory(tmp_path / "once.waylore") as once:
        once.add_files(folder, root=folder)
        assert export(once, tmp_path) == export(memory, tmp_path)


def export(memory: Waylore, folder: Path) -> bytes:
    memory.export(folder / "export")
    return (folder / "export").read_bytes()


def test_hash_in_file_name_is_escaped(memory: Waylore, tmp_path: Path) -> None:
    folder = tmp_path / "C# 100%"
    folder.mkdir()
    (folder / "C").write_text("The language C.")
    (folder / "C#.md").write_text("The language C sharp.")
    memory.add_files(folder, root=tmp_path)
    (folder / "C").write_text("The language C, again.")
    assert memory.add_files(folder, root=tmp_path).forgotten == 0
    assert list_uris(memory) == ["C%23 100%25/C", "C%23 100%25/C%23.md"]


class Unsteady(RuleExtractor):
    """An extractor whose first results are provisional."""

    is_available = False

    def extract_reading(
        self, reading: Reading, document: Document, passages: Sequence[Passage]
    ) -> Sequence[Extraction]:
        extractions = super().extract_reading(reading, document, passages)
        return extractions if self.is_available else [Extraction(provisional=True) for _ in extractions]


def test_provisional_extractions_are_read_again(tmp_path: Path, folder: Path) -> None:
    extractor = Unsteady()
    with Waylore.open(tmp_path / "a.waylore", embedder=EMBEDDER, extractor=extractor) as memory:
        memory.add_files(folder)
        assert memory.add_files(folder).unchanged == 0
        extractor.is_available = True
        assert memory.add_files(folder).documents == 1  # rows have only declared facts
        assert memory.add_files(folder).unchanged == 2


FILES = ["a.md", "b.md", "c/a.md", "rows.csv", "talk.jsonl"]
CONTENT = [
    "# Ada\n\nAda met Byron.\n",
    "Byron wrote.\n\nAda read.",
    "title,text\nx,Ada\ny,Bob\n",
    '{"text": "Ada"}\n',
    "",
]
edits = st.lists(st.tuples(st.sampled_from(FILES), st.sampled_from([None, *CONTENT])), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(st.lists(edits, min_size=1, max_size=4))
def test_memory_depends_only_on_final_folder(rounds: list[list[tuple[str, str | None]]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        folder = place / "folder"
        (folder / "c").mkdir(parents=True)
        with open_memory(place / "grown.waylore") as grown, open_memory(place / "fresh.waylore") as fresh:
            for some in rounds:
                apply_changes(folder, some)
                grown.add_files(folder, root=folder, prune=True)
            for waylore in (grown, fresh):
                keep_readable(folder, waylore.add_files(folder, root=folder, prune=True).skipped)
                waylore.add_files(folder, root=folder, prune=True)
            assert export(grown, place) == export(fresh, place)


def apply_changes(folder: Path, some: list[tuple[str, str | None]]) -> None:
    for file, content in some:
        if content is None:
            (folder / file).unlink(missing_ok=True)
        else:
            (folder / file).write_text(content)


def keep_readable(folder: Path, skipped: tuple[Skipped, ...]) -> None:
    """Remove unreadable files: they keep their old documents, so only readable ones can be compared."""
    for file in skipped:
        (folder / file.uri.partition("#")[0]).unlink(missing_ok=True)


def test_shrunken_large_file_is_forgotten_in_batches(memory: Waylore, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f'{{"text": "Row {n}."}}\n' for n in range(3_000)))
    assert memory.add_files(path, root=tmp_path).documents == 3_000
    path.write_text("".join(f'{{"text": "Row {n}."}}\n' for n in range(10)))
    again = memory.add_files(path, root=tmp_path)
    assert (again.documents, again.forgotten) == (0, 2_990)
    assert memory.stats().documents == 10
    assert memory.add_files(path, root=tmp_path).unchanged == 1


def test_uri_replaces_the_address_of_a_file(memory: Waylore, tmp_path: Path) -> None:
    for name, text in (("a1.md", "# Login\n\nMara owns it."), ("b2.md", "# Login\n\nKofi owns it.")):
        (tmp_path / name).write_text(text)
        memory.add_files(tmp_path / name, uri="https://example.org/login")
    assert list_uris(memory) == ["https://example.org/login"]
    assert memory.search("owner of login").hits[0].passage.text.endswith("Kofi owns it.")
    again = memory.add_files(tmp_path / "b2.md", uri="https://example.org/login")
    assert (again.unchanged, again.documents) == (1, 0)


def test_file_is_split_when_long_and_joined_when_short(memory: Waylore, tmp_path: Path) -> None:
    path, limits = tmp_path / "a.txt", Limits(split_bytes=100)
    path.write_text("A short one.\n")
    memory.add_files(path, root=tmp_path, limits=limits)
    assert list_uris(memory) == ["a.txt"]
    path.write_text("A short one.\n\n" * 20)
    report = memory.add_files(path, root=tmp_path, limits=limits)
    assert (list_uris(memory), report.forgotten) == (["a.txt#part=1"], 1)
    path.write_text("A short one.\n")
    report = memory.add_files(path, root=tmp_path, limits=limits)
    assert (list_uris(memory), report.forgotten) == (["a.txt"], 1)


def test_progress_advances_within_a_large_file(
    memory: Waylore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(add, "BATCH_ROWS", 64)
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f'{{"text": "Row {n}."}}\n' for n in range(2_000)))
    seen: list[Progress] = []
    memory.add_files(path, root=tmp_path, progress=seen.append)
    read = [progress.bytes for progress in seen]
    assert read == sorted(read)
    assert len(set(read)) > 3
    assert read[-1] == seen[-1].of_bytes == path.stat().st_size


def test_number_of_listed_skips_is_limited(memory: Waylore, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("{}\n" * 2_500 + '{"text": "A row."}\n')
    added = memory.add_files(path, root=tmp_path)
    assert (added.documents, added.skipped_count, len(added.skipped)) == (1, 2_500, 1_000)

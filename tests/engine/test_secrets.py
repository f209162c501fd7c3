"""No byte of a store or an export has a secret that was added, whichever way it came in."""

import json
import string
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unit.indexing.secrets.samples import PASSWORD, SECRETS
from waylore import Waylore
from waylore.providers.embedders.hashing import HashingEmbedder

EMBEDDER = HashingEmbedder(32, quiet=True)
TOKEN = SECRETS[2][2]
MARK = "[left out: github token]"
secrets = st.sampled_from([secret for secret in SECRETS if secret[0] != "private"])
words = st.text(string.ascii_lowercase + " ", max_size=20)
sentences = st.lists(words, max_size=3).map(" ".join)

# Each adds a text in one way.
WAYS: dict[str, Callable[[Waylore, str, Path], object]] = {
    "text": lambda memory, text, _: memory.add(text, title="T"),
    "title": lambda memory, text, _: memory.add("Some words.", title=text),
    "metadata": lambda memory, text, _: memory.add("Some words.", metadata={"a": text, "b": [text, "x"]}),
    "fact of a text": lambda memory, text, _: memory.add("Ann has it.", facts=[("Ann", "has", text)]),
    "subject": lambda memory, text, _: memory.add_facts([(text, "belongs_to", "Ann")]),
    "statement": lambda memory, text, _: memory.add_facts(
        [{"subject": "Ann", "predicate": "has", "object": "it", "statement": text}]
    ),
    "message": lambda memory, text, _: memory.remember(text, user="ann"),
    "messages": lambda memory, text, _: memory.remember(
        [{"role": "user", "content": text}, {"role": "assistant", "content": f"You said {text}"}], metadata={"a": text}
    ),
    "memory": lambda memory, text, _: memory.add(text, source="conversation"),
    "name": lambda memory, text, _: memory.mark_same(text, "Ann"),
    "file": lambda memory, text, folder: memory.add_files(_write(folder / "a.md", f"# {text}\n\nSome words: {text}\n")),
    "data": lambda memory, text, folder: memory.add_files(_write(folder / "a.json", json.dumps({"a": {"b": text}}))),
    "rows": lambda memory, text, folder: memory.add_files(
        _write(folder / "a.jsonl", json.dumps({"text": text, "note": text, "title": text}))
    ),
    "triples": lambda memory, text, folder: memory.import_(
        _write(folder / "a.jsonl", json.dumps({"subject": "Ann", "predicate": "has", "object": text, "note": text})),
        "triples",
    ),
    "memories": lambda memory, text, folder: memory.import_(
        _write(folder / "a.json", json.dumps({"results": [{"id": "1", "memory": text, "user_id": "ann"}]})), "mem0"
    ),
}


def _write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def read_bytes(folder: Path) -> bytes:
    """Return all bytes of a store and of its log."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("m.waylore*")))


def list_traces(secret: str) -> list[bytes]:
    """Return the parts of a secret that no byte of a store may have, in any case."""
    return [line.encode() for line in secret.lower().split("\n") if line]


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=8, deadline=None)
@given(sample=secrets, before=sentences, after=sentences)
def test_no_byte_has_a_secret(way: str, sample: tuple[str, str, str, str], before: str, after: str) -> None:
    _, begin, secret, end = sample
    text = f"{before} {begin}{secret}{end} {after}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "files").mkdir()
        with Waylore.open(folder / "m.waylore", embedder=EMBEDDER) as memory:
            WAYS[way](memory, text, folder / "files")
            exported = "".join(memory.export_lines()).lower()
            stored = memory.stats().documents
        assert stored
        content = read_bytes(folder).lower()
        assert b"left out" in content
        assert not [trace for trace in list_traces(secret) if trace in content or trace.decode() in exported]


@pytest.mark.parametrize("way", WAYS)
def test_adding_twice_changes_nothing(tmp_path: Path, way: str) -> None:
    with Waylore.open(tmp_path / "m.waylore", embedder=EMBEDDER) as memory:
        WAYS[way](memory, f"My token is {TOKEN}, keep it.", tmp_path)
        before = "".join(memory.export_lines())
        WAYS[way](memory, f"My token is {TOKEN}, keep it.", tmp_path)
        assert "".join(memory.export_lines()) == before


def test_what_was_left_out_is_counted(tmp_path: Path) -> None:
    text = f"The token {TOKEN} and again {TOKEN}; password = '{PASSWORD}'"
    (tmp_path / "a.md").write_text(text)
    (tmp_path / "a.jsonl").write_text(json.dumps(["Ann", "has", TOKEN]))
    with Waylore.open(tmp_path / "m.waylore") as memory:
        added = memory.add(text, title=TOKEN, metadata={"token": TOKEN})
        [fact] = memory.add_facts([("Ann", "has", TOKEN)])
        assert isinstance(added, str)
        assert added.left_out == {"github token": 1, "password": 1}
        assert fact.left_out == {"github token": 1}
        assert memory.add("Nothing secret.").left_out == {}
        assert memory.remember(text).left_out == {"github token": 1, "password": 1}
        assert memory.add_files(tmp_path / "a.md").left_out == {"github token": 1, "password": 1}
        assert memory.add_files(tmp_path / "a.md").left_out == {}  # it is unchanged
        assert memory.import_(tmp_path / "a.jsonl", "triples").left_out == {"github token": 1}


def test_a_password_is_known_by_the_name_of_its_field(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "m.waylore") as memory:
        id_ = memory.add("Some words.", metadata={"db_password": PASSWORD, "api_key": "none", "card": 4539148803436467})
        assert memory.get(id_).document.metadata == {
            "db_password": "[left out: password]",
            "api_key": "none",
            "card": "[left out: card number]",
        }


def test_offsets_of_passages_point_into_the_original(tmp_path: Path) -> None:
    parts = [f"Part {number} has {TOKEN} and {'many words of its own ' * 30}end{number}." for number in range(20)]
    text = "\n\n".join(parts)
    (tmp_path / "a.txt").write_text(text)
    with Waylore.open(tmp_path / "m.waylore") as memory:
        memory.add_files(tmp_path / "a.txt", root=tmp_path)
        added = [memory.add(text), *(document.id for document in memory.documents(under="a.txt"))]
        for passages in (memory.get(id_).passages for id_ in added):
            assert len(passages) > 10
            for passage in passages:
                assert text[passage.start : passage.end].replace(TOKEN, MARK) == passage.text


def test_secrets_are_kept_on_request(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"The token {TOKEN} stays.")
    with Waylore.open(tmp_path / "m.waylore", scrub=False) as memory:
        assert TOKEN in memory.get(memory.add(f"A token {TOKEN}.")).passages[0].text
        assert memory.add_files(tmp_path / "a.md").left_out == {}
        assert TOKEN in "".join(memory.export_lines())
    assert TOKEN.encode() in read_bytes(tmp_path)


def test_a_file_that_was_stored_with_secrets_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"The token {TOKEN} stays.")
    with Waylore.open(tmp_path / "m.waylore", scrub=False) as memory:
        memory.add_files(tmp_path / "a.md")
    with Waylore.open(tmp_path / "m.waylore") as memory:
        assert memory.add_files(tmp_path / "a.md").left_out == {"github token": 1}
        memory.compact()
    assert TOKEN.encode() not in read_bytes(tmp_path)


def test_an_export_is_imported_as_it_is(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "m.waylore", scrub=False) as memory:
        memory.add(f"A token {TOKEN}.")
        memory.export(tmp_path / "export.jsonl")
        exported = "".join(memory.export_lines())
    with Waylore.open(tmp_path / "other.waylore") as memory:
        assert memory.import_(tmp_path / "export.jsonl").left_out == {}
        assert "".join(memory.export_lines()) == exported

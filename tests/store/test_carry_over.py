"""A file of the layout before packs is carried over when it is opened: it answers alike, and a kill loses nothing."""

import shutil
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import apsw
import numpy as np
import pytest
from tools.faults import measure_seconds, start_and_kill

from faults.documents import Edition, make_document
from store.earlier_layout import restore_rows
from waylore.store.protocol import Store
from waylore.store.sqlite.store import SqliteStore
from waylore.testing.world import MODEL, WORLD, day, page
from waylore.types.author import OWNER
from waylore.types.columns import FactColumns
from waylore.types.knowledge import STATUSES, IndexedDocument
from waylore.types.results import Receipt

DOCUMENTS = 150
KILLS = [5, pytest.param(20, marks=pytest.mark.full)]
OPEN = """
import sys
from waylore.store.protocol import Store
from waylore.store.sqlite.store import SqliteStore

print("begun", flush=True)
SqliteStore(sys.argv[1]).close()
print("done", flush=True)
"""


def write(path: Path, documents: Sequence[IndexedDocument], model: str | None) -> None:
    with closing(SqliteStore(path)) as store:
        store.write(documents, author=OWNER, model=model)
        facts = [fact.id for document in documents for fact in document.facts]
        store.count_uses(passages=[documents[0].passages[0].id], facts=facts[:2], at=day("2024-05-02"))


def describe(facts: FactColumns) -> dict[str, list[object]]:
    return {
        id_: [(fact, None if fact.vector is None else fact.vector.tolist()) for fact in facts[id_]] for id_ in facts
    }


def read_store(store: Store) -> list[object]:
    """Return everything that a collection exports, and what its reads of the graph return."""
    documents = list(store.export())
    entities = sorted({entity.id for document in documents for entity in document.entities})
    passages = [passage.id for document in documents for passage in document.passages]
    facts = sorted({fact.id for document in documents for fact in document.facts})
    assert store.find_remains(Receipt()) == ()
    return [
        documents,
        [part.vector is None or part.vector.tobytes() for document in documents for part in document.parts],
        store.statistics(),
        describe(store.facts_of_entities(entities, per_entity=5, statuses=STATUSES)),
        describe(store.facts_of_passages(passages, per_passage=5)),
        describe(store.pairs_of_entities(entities, per_entity=5, passages_per_entity=5)),
        dict(store.passages_of_entities(entities, per_entity=5)),
        dict(store.entities_of_passages(passages, per_passage=5)),
        store.facts(facts),
    ]


def read_all(path: Path) -> list[object]:
    with closing(SqliteStore(path)) as store:
        return read_store(store)


@pytest.mark.parametrize("model", [None, MODEL])
def test_file_of_earlier_layout_answers_alike(tmp_path: Path, model: str | None) -> None:
    new, old = tmp_path / "new.waylore", tmp_path / "old.waylore"
    documents = [*WORLD, page("東京 and Łódź", metadata={"lang": "ja"})]
    if model is None:
        documents = [make_document(Edition(number, 1)) for number in range(9)]
    write(new, documents, model)
    shutil.copy(new, old)
    restore_rows(old)
    assert read_all(old) == read_all(new)


def test_restored_rows_are_those_of_the_earlier_layout(tmp_path: Path) -> None:
    """Otherwise the other tests would carry over an empty file."""
    path = tmp_path / "a.waylore"
    write(path, WORLD, MODEL)
    with closing(SqliteStore(path)) as store:
        known = store.statistics()
    restore_rows(path)
    with closing(apsw.Connection(str(path))) as db:
        db.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        counts = [db.execute(f"SELECT count(*) FROM {table}").get for table in ("facts", "mentions")]
        pairs = sum(len(document.pairs) for document in WORLD)
        assert counts == [known.facts + pairs, known.mentions]


def test_staged_vectors_survive_and_those_of_facts_are_made_again(tmp_path: Path) -> None:
    path = tmp_path / "a.waylore"
    write(path, WORLD, MODEL)
    restore_rows(path)
    with closing(SqliteStore(path)) as store:
        while items := store.list_unembedded("next", limit=7):
            vector = np.eye(12, dtype=np.float32)[len(items)]
            embedded = [replace(item, vector=vector) for item in items]
            store.stage_vectors(embedded, author=OWNER, model="next")
        assert store.activate_model("next", author=OWNER)
        assert store.find_remains(Receipt()) == ()
        assert {len(fact.vector) for d in store.export() for fact in d.facts if fact.vector is not None} == {12}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kills", KILLS)
def test_killed_process_leaves_a_file_that_is_carried_over(tmp_path: Path, kills: int) -> None:
    old, path = tmp_path / "old.waylore", tmp_path / "a.waylore"
    write(old, [make_document(Edition(number, 1)) for number in range(DOCUMENTS)], None)
    expected = read_all(old)
    restore_rows(old)
    shutil.copy(old, path)
    command = [sys.executable, "-c", OPEN, str(path)]
    whole = measure_seconds(command)
    finished = []
    for number in range(kills):
        for file in tmp_path.glob("a.waylore*"):
            file.unlink()
        shutil.copy(old, path)
        finished.append(start_and_kill(command, tmp_path, whole * number / kills))
        assert read_all(path) == expected
    assert not all(finished)

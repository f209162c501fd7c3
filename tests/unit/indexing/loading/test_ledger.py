"""The ledger counts each outcome once, in any order, and finds the files that are complete."""

from pathlib import Path
from random import Random

from waylore.indexing.blocks import Limits, Skipped, Source
from waylore.indexing.files.addresses import Fingerprint
from waylore.indexing.files.batches import FileRead
from waylore.indexing.loading.job import Outcome, PieceDone, UnitDone, WrittenBatch
from waylore.indexing.loading.ledger import LoadLedger


def make_piece(key: str, number: int = 0, *, is_last: bool = True, is_finished: bool = False) -> PieceDone:
    file = FileRead(Source(Path(key), key, Limits()), 10, Fingerprint("place", "content"))
    return PieceDone(key, number, is_last, 6, 10, file, is_read=True, is_finished=is_finished, seen=(f"{key}{number}",))


def list_outcomes() -> list[Outcome]:
    """Return a file in three pieces of two batches each, and a small file whose batch had its fingerprint."""
    long = [("a", number) for number in range(3)]
    written = [WrittenBatch(unit, batch, 1, 2, 3) for unit in long for batch in range(2)]
    done = [UnitDone(unit, 2, (make_piece("a", unit[1], is_last=unit[1] == 2),), {"password": 1}) for unit in long]
    small = UnitDone(("b", 0), 1, (make_piece("b", is_finished=True),))
    return [*written, *done, WrittenBatch(("b", 0), 0, 1, 1, 1), small]


def test_outcomes_count_once_in_any_order() -> None:
    for seed in range(20):
        outcomes = list_outcomes() * 2
        Random(seed).shuffle(outcomes)
        ledger = LoadLedger(2, 20)
        for outcome in outcomes:
            ledger.take(outcome)
        [complete] = ledger.pop_complete()
        assert complete.file.fingerprint.content == "content"
        assert sorted(complete.seen) == ["a0", "a1", "a2"]
        assert (ledger.report.documents, ledger.report.passages, ledger.report.facts) == (7, 13, 19)
        assert ledger.report.left_out == {"password": 3}
        assert (ledger.progress.files, ledger.progress.bytes, ledger.waiting) == (2, 20, 0)


def test_file_without_one_batch_is_not_complete() -> None:
    missing, *outcomes = list_outcomes()
    ledger = LoadLedger(2, 20)
    for outcome in outcomes:
        ledger.take(outcome)
    assert ledger.waiting == 0
    ledger.take(missing)
    assert ledger.waiting == 1


def test_file_with_a_skipped_part_is_read_again_next_time() -> None:
    piece = make_piece("a")
    skipped = PieceDone(
        "a", 0, True, 10, 10, piece.file, is_read=True, has_all=False, skipped=(Skipped("a", "why"),), skipped_count=5
    )
    ledger = LoadLedger(1, 10)
    ledger.take(UnitDone(("a", 0), 0, (skipped,)))
    [complete] = ledger.pop_complete()
    assert complete.file.fingerprint.content == ""
    assert (ledger.skipped.count, len(ledger.skipped.reported)) == (5, 1)

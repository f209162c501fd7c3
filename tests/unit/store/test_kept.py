"""What a connection keeps of rows is what was read, however rows are asked for, and never more than the limit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore.store.sqlite import scope as scoping
from waylore.store.sqlite.scope import Columns, KeptRows, Rows

ROWS = st.lists(st.integers(1, 60), unique=True, max_size=20).map(lambda rows: np.array(rows, np.int64))


def read(rows: Rows) -> Columns:
    """Return two columns that tell the row."""
    return rows[:, None] * np.ones(4, np.float32), -rows


def refuse(rows: Rows) -> Columns:
    raise AssertionError(f"{rows} were read twice")


@given(st.lists(ROWS, min_size=1, max_size=8))
def test_rows_are_read_once_and_returned_in_their_order(asked: list[Rows]) -> None:
    table = KeptRows()
    seen: set[int] = set()

    def read_new(rows: Rows) -> Columns:
        assert seen.isdisjoint(rows.tolist())
        return read(rows)

    for rows in asked:
        vectors, numbers = table.take(rows, read_new)
        assert vectors[:, 3].tolist() == rows.tolist()
        assert numbers.tolist() == (-rows).tolist()
        seen |= {*rows.tolist()}
    for rows in filter(len, asked):
        assert table.take(rows, refuse)[1].tolist() == (-rows).tolist()


@given(st.lists(ROWS, min_size=1, max_size=8), st.integers(0, 2_000))
def test_no_more_bytes_are_kept_than_allowed(asked: list[Rows], limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scoping, "MAX_BYTES", limit)
        table = KeptRows()
        for rows in asked:
            assert table.take(rows, read)[1].tolist() == (-rows).tolist()
            assert table.size <= limit


def test_rows_that_are_far_apart_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoping, "MAX_SPAN", 50)
    table = KeptRows()
    for rows in ([10**9, 10**9 + 30], [10**9 - 5], [10**9 - 20], [3, 10**12], [10**9 + 30, 10**9 - 5]):
        assert table.take(np.array(rows), read)[1].tolist() == [-row for row in rows]
    assert table.take(np.array([10**9 + 30, 10**9 - 5]), refuse)[1].tolist() == [-(10**9) - 30, 5 - 10**9]
    assert table.size == 3 * (4 * 8 + 8)

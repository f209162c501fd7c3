"""The cells of a federation, and the collections of one store: asked all at once, written one at a time.

Here is when an answer may be partial, and when a write is done: `tolerance` and `federated_placing` say why.
What is asked and what is made of the answers is not known here.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial, reduce
from typing import TypeVar

from waylore.cells.catalogue.protocol import Catalogue, Placed
from waylore.cells.channels import Asked, Line, settle
from waylore.cells.placement import Places, is_same_place
from waylore.config import Cells
from waylore.errors import ConfigError, StoreError, StoreUnavailable
from waylore.store.partial import left_out
from waylore.store.protocol import Store

T = TypeVar("T")
OpenCell = Callable[[str, str], Store]
Verb = Callable[[Placed, Store], T]


class Federation:
    """The cells of a catalogue and the lines to them: what all stores of a process should share."""

    def __init__(self, catalogue: Catalogue, open_cell: OpenCell, config: Cells = Cells()) -> None:  # noqa: B008
        self.catalogue = catalogue
        self.open_cell = open_cell
        self.config = config
        as_often = replace(
            config, rest_seconds=config.place_seconds
        )  # who does not hear of a move reads what is gone
        self.catalogue_line = Line("the catalogue of cells", as_often)
        self._lines: dict[str, Line] = {}
        self._adding = threading.Lock()

    def line(self, cell: str) -> Line:
        """The line to a cell."""
        with self._adding:
            if cell not in self._lines:
                self._lines[cell] = Line(f"cell {cell}", self.config)
            return self._lines[cell]

    def close(self) -> None:
        """Let go of threads and catalogue; stores are closed by whoever opened them."""
        for line in (*self._lines.values(), self.catalogue_line):
            line.end()
        self.catalogue.close()


class Members:
    """The collections of one store (all there are, if None), and the one among them that is written, if any."""

    def __init__(self, federation: Federation, collections: Sequence[str] | None, written: str) -> None:
        self.written = written
        self.is_one = collections is not None and len(collections) == 1
        self._federation = federation
        self._places = Places(federation.catalogue, collections, federation.catalogue_line)
        self._stores: dict[tuple[str, str], tuple[int, Store]] = {}

    def ask(self, verb: Verb[T], *, only: str = "", tries: int = 2) -> list[T]:
        """What every collection says, in the order of their names, or `only` one; two tries are for reads."""
        known = left_out()
        placed = [p for name, p in self._places.now().items() if only in ("", name)]
        asked = [
            (p.cell, self._federation.line(p.cell).ask(partial(self._run, verb, p), tries=tries))
            for p in placed
            if not known or p.cell not in known
        ]
        settle([each for _, each in asked])
        failed = {cell: str(each.error) for cell, each in asked if isinstance(each.error, StoreUnavailable)}
        answered = [each for cell, each in asked if cell not in failed]
        if (placed and not answered) or (failed and known is None):
            raise _unavailable(failed or known or {}, [each for _, each in asked])
        if known is not None:
            known |= failed
        return [each.answer for each in answered]

    def write(
        self,
        verb: Callable[[Store], T],
        *,
        both: Callable[[T, T], T],
        stray: Callable[[Store], object] = lambda _: None,
    ) -> T:
        """Write to the written collection, and again where it lives now, if it moved meanwhile.

        `both` says what is answered then, `stray` what is to be done in the cell that it has left.
        """
        if not self.written:
            raise ConfigError(
                "several collections are open, and none is to be written: open one alone, or mark it (+NAME,…)"
            )
        answers: list[T] = []
        placed = self._places.writable(self.written)
        while True:
            store = self._store(placed)
            try:
                answers.append(verb(store))
            except Exception:
                if is_same_place(placed, self._places.writable(self.written)):
                    raise
            before, placed = placed, self._places.writable(self.written)
            if is_same_place(before, placed):
                return reduce(both, answers)
            if before.cell not in (placed.cell, placed.other):  # a mover empties the cell that is being left
                with suppress(StoreError):
                    stray(store)

    def each(self) -> list[Store]:
        """The store of every collection, in the order of their names, without the care that `ask` takes."""
        return [self._store(placed) for placed in self._places.now().values()]

    def close(self) -> None:
        """Close what is open; a cell that hangs does not hold this up."""
        stores, self._stores = self._stores, {}
        asked = [self._federation.line(cell).ask(s.close, tries=1) for (cell, _), (_, s) in stores.items()]
        settle(asked)

    def _run(self, verb: Verb[T], placed: Placed) -> T:
        return verb(placed, self._store(placed))

    def _store(self, placed: Placed) -> Store:
        """The store of a collection in its cell; another one after the cell was given up, for it may hang."""
        key, generation = (placed.cell, placed.collection), self._federation.line(placed.cell).generation
        opened, store = self._stores.get(key, (-1, None))
        if store is None or opened != generation:
            fresh = self._federation.open_cell(self._places.url(placed.cell), placed.collection)
            kept = self._stores.get(key, (-1, None))
            if kept[0] == generation and kept[1] is not None:
                fresh.close()  # another thread was faster
                return kept[1]
            self._stores[key] = (generation, fresh)
            if store is not None:
                threading.Thread(target=store.close, daemon=True).start()
            return fresh
        return store


def _unavailable(failed: Mapping[str, str], asked: Sequence[Asked[T]]) -> StoreUnavailable:
    error = StoreUnavailable("; ".join(failed.values()))
    error.__cause__ = next((each.error for each in asked if each.error), None)
    return error

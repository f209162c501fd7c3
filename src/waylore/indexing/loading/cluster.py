"""Run a load on a Ray cluster, as one pipeline of Ray Data: tasks split files, actors prepare, others write.

Each cell has its own writing stage with a limited number of actors; batches for other cells pass through it. Ray Data
limits the batches that wait between two stages. If a node dies, Ray restarts its actors elsewhere, as often as needed
(the default; Ray 2.64 no longer takes `max_restarts`), and repeats their work. That is safe: a unit gives the same
batches each time, and writing a batch twice changes nothing.
"""

import logging
import pickle  # nosec B403 (it reads what our own processes send)
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any, TypeAlias, TypeVar

import numpy as np

from waylore.errors import ConfigError, WayloreError
from waylore.indexing.files.compare import KnownFile
from waylore.indexing.loading.job import LoadJob, Outcome, PreparedBatch, StoredDigests, UnitDone
from waylore.indexing.loading.pieces import split_files
from waylore.indexing.loading.steps import prepare_unit, write_prepared
from waylore.store.protocol import Store

BLOCK_BYTES = 4_000_000  # Ray's own 128 MB of text would keep one actor busy for an hour
MAX_TASKS = 1_000  # tasks that split files
DONE = -1  # cell number of an outcome, which no stage writes
# Fractions of a processor. They leave room on the other nodes for the actors of a dead node.
SPLIT_SHARE, PREPARE_SHARE, WRITE_SHARE = 0.25, 0.5, 0.1
Rows: TypeAlias = dict[str, Any]
T = TypeVar("T")


class ClusterRunner:
    """Runs a load on a cluster; at most `writers` actors and this process write to one cell."""

    def __init__(self, job: LoadJob, *, address: str, workers: int, writers: int) -> None:
        self._job = job
        self._ray, self._data = _import_ray("ray"), _import_ray("ray.data")
        self.can_write = writers > 1  # then this process counts as one of the writers
        self._writers = max(1, writers - 1)
        try:
            self._ray.init(address=address, log_to_driver=False, logging_level="error", ignore_reinit_error=True)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise ConfigError(
                f"no Ray cluster at {address}: start one with `ray start --head` ({error})"[:300]
            ) from error
        self._workers = workers or max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def run(self, groups: Iterator[Sequence[KnownFile]]) -> Iterator[Outcome]:
        """Yield the outcomes."""
        rows = [_make_row(DONE, group) for group in groups]
        if not rows:
            return
        try:
            for batch in self._make_pipeline(rows).iter_batches(batch_size=None, batch_format="numpy"):
                yield from map(_load, batch["message"])
        except (self._ray.exceptions.RayError, self._ray.exceptions.UserCodeException) as error:
            raise _find_cause(error) from error

    def write(self, collection: int, call: Callable[[], T]) -> T:  # noqa: ARG002 (this process writes to every cell)
        """Run a write in this process, one at a time."""
        return call()

    def close(self) -> None:
        """Disconnect from the cluster, which ends the actors."""
        self._ray.shutdown()

    def _make_pipeline(self, rows: list[Rows]) -> Any:
        context = self._data.DataContext.get_current()
        context.target_max_block_size = BLOCK_BYTES
        context.enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        small = replace(self._job, stored=StoredDigests())  # sent with each task
        data = self._data.from_items(rows, override_num_blocks=min(len(rows), MAX_TASKS))
        data = data.flat_map(split_row, fn_kwargs={"job": small}, num_cpus=SPLIT_SHARE)
        data = self._add_actors(data, ClusterPreparer, [self._job], PREPARE_SHARE, self._workers, batch_size=1)
        for cell in sorted(set(self._job.cells)):
            data = self._add_actors(data, ClusterWriter, [small, cell], WRITE_SHARE, self._writers, batch_size=None)
        return data

    def _add_actors(
        self, data: Any, stage: type, arguments: list[Any], share: float, most: int, *, batch_size: int | None
    ) -> Any:
        return data.map_batches(
            stage,
            fn_constructor_args=arguments,
            batch_size=batch_size,
            batch_format="numpy",
            compute=self._data.ActorPoolStrategy(min_size=1, max_size=most, initial_size=most),
            num_cpus=share,
        )


# -- stages, which run on the cluster -------------------------------------------------------------------


def split_row(row: Rows, job: LoadJob) -> Iterator[Rows]:
    """Yield the units of a group of files."""
    return (_make_row(DONE, unit) for unit in split_files(_load(row["message"]), job))


class ClusterPreparer:
    """An actor that holds the models and prepares units."""

    def __init__(self, job: LoadJob) -> None:
        self._job = job
        self._models = job.make_models()

    def __call__(self, batch: Rows) -> Iterator[Rows]:
        """Yield the batches of units, and their ends."""
        for message in batch["message"]:
            for prepared in prepare_unit(_load(message), self._job, self._models):
                yield _make_rows([self._address(prepared)])

    def _address(self, prepared: PreparedBatch | UnitDone) -> Rows:
        cell = self._job.cells[prepared.collection] if isinstance(prepared, PreparedBatch) else DONE
        return _make_row(cell, prepared)


class ClusterWriter:
    """An actor that writes batches to one cell; it opens a collection when it is first written."""

    def __init__(self, job: LoadJob, cell: int) -> None:
        self._job = job
        self._cell = cell
        self._stores: dict[int, Store] = {}

    def __call__(self, batch: Rows) -> Iterator[Rows]:
        """Write the batches for the cell, and pass on the others."""
        for cell, message in zip(batch["cell"], batch["message"], strict=True):
            is_own = int(cell) == self._cell
            yield _make_rows([self._write(message) if is_own else {"cell": int(cell), "message": message}])

    def _write(self, message: bytes) -> Rows:
        prepared = _load(message)
        if prepared.collection not in self._stores:
            self._stores[prepared.collection] = self._job.open_store(self._job.collections[prepared.collection])
        store = self._stores[prepared.collection]
        return _make_row(DONE, write_prepared(store, prepared, self._job.task.author))


def _make_row(cell: int, message: object) -> Rows:
    return {"cell": cell, "message": pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)}


def _make_rows(rows: Sequence[Rows]) -> Rows:
    """Return rows as columns."""
    messages = np.empty(len(rows), dtype=object)
    messages[:] = [row["message"] for row in rows]
    return {"cell": np.array([row["cell"] for row in rows], dtype=np.int64), "message": messages}


def _load(message: bytes) -> Any:
    return pickle.loads(message)  # noqa: S301 # nosec B301 (our own processes made it)


# -- errors ---------------------------------------------------------------------------------------------


def _import_ray(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise ConfigError("--cluster needs Ray: pip install 'waylore[ray]'") from error


def _find_cause(error: BaseException) -> WayloreError:
    """Return the error of a stage, which Ray wraps several times."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, WayloreError):
        cause = getattr(cause, "cause", None) or cause.__cause__
    return cause or WayloreError(f"the cluster has failed; run the same command again to continue: {error}"[:600])

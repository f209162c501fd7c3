"""Open the sources of contexts: benchmark sets, conversations and folders in stores, with their questions."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path

from waylore.engine.waylore import Waylore
from waylore.evaluation.contexts.questions import (
    ContextQuestion,
    list_folder_questions,
    list_set_questions,
    list_turn_questions,
    read_answers,
    read_marks,
)
from waylore.evaluation.conversations.datasets import SETS, read_conversations
from waylore.evaluation.conversations.measure import open_conversations
from waylore.evaluation.datasets import limit_pages, read_dataset, spread
from waylore.evaluation.folders.index import index_folder, open_cached, open_memory
from waylore.evaluation.folders.questions import FILES, QUESTIONS, list_folders, read_questions
from waylore.evaluation.folders.scoring import normalise_path
from waylore.evaluation.index import create_embedder, load_embedder, open_indexed
from waylore.evaluation.sets import list_versions
from waylore.protocols import Embedder
from waylore.store.protocol import Store

OPEN_AT_ONCE = 16  # memories of a set, each at its own time


@dataclass(frozen=True, slots=True)
class ContextSource:
    """Questions about a set or folder, and the memory that answers at a time. `to_page` maps an address to its page."""

    name: str
    questions: Sequence[ContextQuestion]
    open_at: Callable[[datetime], Waylore]
    to_page: Callable[[str], str] = str


def open_folders(options: argparse.Namespace) -> Iterator[ContextSource]:
    """Yield each folder, open until the next one."""
    with open_cached(load_embedder(options.embedder, options.model, options.name), options.vectors) as model:
        for folder in list_folders(options.folders, options.only):
            asked = [q for q in read_questions(folder / QUESTIONS, folder.name) if options.split in ("", q.split)]
            questions = list(spread(list(list_folder_questions(asked)), options.sample))
            with open_memory(folder / FILES, model, options.folder, options.store) as memory:
                index_folder(memory, folder / FILES, model)
                yield ContextSource(folder.name, questions, partial(_ignore_time, memory), normalise_path)


def open_sets(options: argparse.Namespace) -> Iterator[ContextSource]:
    """Yield each set, open until the next one."""
    embedder = create_embedder(options)
    for name in options.sets or SETS:
        yield from (_open_turns if name in SETS else _open_set)(options.data / name, embedder, options)


def _open_set(folder: Path, embedder: Embedder, options: argparse.Namespace) -> Iterator[ContextSource]:
    """Yield a set once for each source of facts."""
    dataset = read_dataset(folder, sample=options.sample)
    if options.passages:
        dataset = limit_pages(dataset, options.passages)
    questions = list(list_set_questions(dataset, read_answers(folder), read_marks(folder)))
    for version in list_versions(dataset, options):
        with open_indexed(version, embedder, options.folder, options.store) as store:
            yield ContextSource(version.name, questions, lru_cache(OPEN_AT_ONCE)(partial(_open_at, store, embedder)))


def _open_turns(folder: Path, embedder: Embedder, options: argparse.Namespace) -> Iterator[ContextSource]:
    dataset = read_conversations(folder, every=options.every)
    sampled = replace(dataset, questions=tuple(spread(dataset.questions, options.sample)))
    questions = list(list_turn_questions(sampled, read_answers(folder)))
    with open_conversations(dataset, embedder, options.folder, options.store) as store:
        yield ContextSource(dataset.name, questions, lru_cache(OPEN_AT_ONCE)(partial(_open_at, store, embedder)))


def _open_at(store: Store, embedder: Embedder, at: datetime) -> Waylore:
    return Waylore(store, embedder, clock=lambda: at, cache=None)


def _ignore_time(memory: Waylore, _: datetime) -> Waylore:
    return memory

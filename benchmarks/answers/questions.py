"""List the questions that a model is asked, with their right answers and the contexts to compare.

The contexts are: none; what hybrid search and what the default find, as `context` returns it; and the gold. The gold
of a set or conversation is all its gold pages, that of a folder the passage that has most words of each quote. The
gold is written and cut as the other contexts are. The marks of fences, which depend on the store, are left out.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from random import Random

from waylore.engine.waylore import Waylore
from waylore.evaluation.contexts.measure import ContextPlan, choose_counter, list_contexts
from waylore.evaluation.contexts.questions import ContextQuestion
from waylore.evaluation.contexts.sources import ContextSource, open_folders, open_sets
from waylore.evaluation.conversations.table import ADVERSARIAL
from waylore.evaluation.datasets import read_rows, spread
from waylore.evaluation.folders.measure import BASELINE
from waylore.evaluation.folders.questions import QUESTIONS, list_folders
from waylore.evaluation.folders.scoring import split_words
from waylore.fence import remove_fences
from waylore.recipes import AUTO
from waylore.types.search import Hit, SearchResult

NONE, DEFAULT, GOLD = "none", "default", "gold"
CONTEXTS = (NONE, BASELINE, DEFAULT, GOLD)
FOLDERS = "folders"  # all of them as one set
ORDER_SEED = 7
Labels = Mapping[str, tuple[str, ...]]  # right answers by id of the question


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question of a set with its right answers, and its contexts by name."""

    set: str
    text: str
    answers: tuple[str, ...]
    contexts: Mapping[str, str]


def list_asked(options: argparse.Namespace) -> list[AskedQuestion]:
    """Return the questions of all sets in turn, so that the first ones are a sample of each set."""
    plan = ContextPlan(("passages",), (BASELINE, AUTO), (options.tokens,), choose_counter()[0])
    asked = [*_list_of_sets(options, plan), *(_list_of_folders(options, plan) if options.folders else ())]
    return interleave(asked)


def interleave(asked: Iterable[AskedQuestion]) -> list[AskedQuestion]:
    """Return the questions in turn, one of each set, those of a set at random."""
    by_set: dict[str, list[AskedQuestion]] = defaultdict(list)
    for question in asked:
        by_set[question.set].append(question)
    for of_set in by_set.values():
        Random(ORDER_SEED).shuffle(of_set)
    return [question for each in zip_longest(*by_set.values()) for question in each if question]


def _list_of_sets(options: argparse.Namespace, plan: ContextPlan) -> Iterator[AskedQuestion]:
    for name, source in zip(options.sets, open_sets(options), strict=True):
        yield from _list_of_source(name, source, read_set_labels(options.data / name), options.questions, plan)


def _list_of_folders(options: argparse.Namespace, plan: ContextPlan) -> Iterator[AskedQuestion]:
    folders = list_folders(options.folders, options.only)
    number = -(-options.questions // len(folders))
    for folder, source in zip(folders, open_folders(options), strict=True):
        yield from _list_of_source(FOLDERS, source, read_folder_labels(folder), number, plan)


def _list_of_source(
    name: str, source: ContextSource, labels: Labels, number: int, plan: ContextPlan
) -> Iterator[AskedQuestion]:
    """Yield so many of the questions that have a right answer, evenly spread."""
    for question in spread([q for q in source.questions if labels.get(q.id)], number):
        contexts = dict(_make_contexts(source, question, plan))
        yield AskedQuestion(name, question.text, labels[question.id], contexts)


def read_set_labels(folder: Path) -> Labels:
    """Read the right answers of a set; an adversarial question has none."""
    rows = [row for row in read_rows(folder / "queries.jsonl.gz") if row.get("type") != ADVERSARIAL]
    return {row["id"]: tuple(str(each) for each in (row["answer"], *row.get("answer_aliases", ()))) for row in rows}


def read_folder_labels(folder: Path) -> Labels:
    """Read the right answers of the questions about a folder."""
    rows = map(json.loads, filter(str.strip, (folder / QUESTIONS).read_text("utf-8").splitlines()))
    return {f"{folder.name}/{row['id']}": (row["answer"],) for row in rows if row.get("answer")}


# -- contexts ------------------------------------------------------------------------------------------


def _make_contexts(source: ContextSource, question: ContextQuestion, plan: ContextPlan) -> Iterator[tuple[str, str]]:
    memory = source.open_at(question.at)
    yield NONE, ""
    for setting, context in list_contexts(memory, question, plan):
        yield (DEFAULT if setting.method == AUTO else setting.method), remove_fences(context.text).strip()
    gold = SearchResult(question.text, tuple(find_gold(memory, source, question)))
    context = memory.context(gold, max_tokens=plan.budgets[0], count=plan.count)
    yield GOLD, remove_fences(context.text).strip()


def find_gold(memory: Waylore, source: ContextSource, question: ContextQuestion) -> Iterator[Hit]:
    """Yield the gold passages of a question, page by page."""
    for page in sorted(question.gold):
        passages = list(_read_page(memory, source, question, page))
        places = [places[0] for places in question.support if places[0].page == page]
        quotes = [sentence for place in places for sentence in place.sentences]
        yield from _choose_passages(passages, quotes) if len(passages) > 1 else passages


def _read_page(memory: Waylore, source: ContextSource, question: ContextQuestion, page: str) -> Iterator[Hit]:
    for listed in memory.documents(under=page, where=question.where):
        if source.to_page(listed.uri) == page:
            stored = memory.get(listed.id, where=question.where)
            yield from (Hit(passage, stored.document, 1.0, ()) for passage in stored.passages)


def _choose_passages(passages: Sequence[Hit], quotes: Sequence[str]) -> list[Hit]:
    """Return for each quote the passage with most of its words, in their order."""
    words = [set(split_words(hit.text)) for hit in passages]
    best = {max(range(len(passages)), key=lambda n: len(words[n].intersection(split_words(q)))) for q in quotes}
    return [passages[number] for number in sorted(best)]

"""Measure recipes on a collection of documents and turns: half of LoCoMo and half of 2WikiMultihopQA in one store.

    python -m waylore.evaluation.conversations.mixed --data SETS --model WEIGHTS --vectors CACHE --folder STORES

The first half of the conversations, every second page, and the pages that the questions need are stored together.
Questions of both sets are asked as the user of a conversation, who sees that conversation and all pages. Recall is by
turn and by page.
"""

import argparse
from collections.abc import Iterator, Sequence

from waylore.evaluation.conversations.datasets import ConversationQuestion, ConversationSet, read_conversations
from waylore.evaluation.conversations.measure import (
    DEPTHS,
    add_set_options,
    choose_always,
    format_recall,
    open_conversations,
    run_questions,
)
from waylore.evaluation.datasets import EvaluationQuestion, read_dataset
from waylore.evaluation.index import create_embedder
from waylore.recipes import RECIPES
from waylore.types.knowledge import EPOCH

TURNS = "locomo"
PAGES = "2wikimultihopqa"
RECIPE_NAMES = ("hybrid", "chain", "conversation", "mixed")


def mix_sets(options: argparse.Namespace) -> tuple[ConversationSet, tuple[ConversationQuestion, ...]]:
    """Return one set with half of the turns and pages and the questions about turns, and the questions about pages."""
    talk = read_conversations(options.data / TURNS, every=options.every)
    wiki = read_dataset(options.data / options.pages)
    asked = [question for question in talk.questions if question.half == 0]
    users = sorted({question.user for question in asked})
    about_pages = wiki.questions[:: 2 * options.every]
    needed = frozenset[str]().union(*(question.gold for question in about_pages))
    pages = [page for n, page in enumerate(wiki.pages) if n % 2 == 0 or page.document.uri in needed]
    turns = [turn for turn in talk.turns if turn.document.user in users]
    mixed = ConversationSet(f"{TURNS}-{options.pages}", (*turns, *pages), tuple(asked))
    return mixed, tuple(_ask_as(users, about_pages))


def _ask_as(users: Sequence[str], questions: Sequence[EvaluationQuestion]) -> Iterator[ConversationQuestion]:
    for number, question in enumerate(questions):
        user = users[number % len(users)]
        yield ConversationQuestion(question.id, question.text, question.gold, frozenset(), user, EPOCH, 0)


def main(arguments: list[str] | None = None) -> None:
    """Print the recall of each recipe by turn and by page."""
    options = _parse_options(arguments)
    embedder = None if options.words else create_embedder(options)
    mixed, about_pages = mix_sets(options)
    with open_conversations(mixed, embedder, options.folder, options.store) as store:
        for name in options.recipes:
            for label, questions in ((TURNS, mixed.questions), (options.pages, about_pages)):
                run = run_questions(store, embedder, questions, choose_always(RECIPES[name]), top_k=max(DEPTHS))
                print("\n".join(format_recall(f"{label} in the mixed set, {name}", questions, run)))
                print(f"{1000 * run.seconds / len(questions):.2f} ms of processor for each question", flush=True)


def _parse_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m waylore.evaluation.conversations.mixed", description=__doc__)
    parser.add_argument("--recipes", nargs="+", choices=sorted(RECIPES), default=RECIPE_NAMES)
    parser.add_argument("--pages", default=PAGES, help="Set of the pages")
    parser.add_argument("--words", action="store_true", help="Use no vectors")
    add_set_options(parser)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()

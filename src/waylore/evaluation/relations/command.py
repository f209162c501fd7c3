"""Run `waylore eval --folders DIR --sets`: ask for sets about the files of folders, and print how complete they are."""

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from waylore.evaluation.folders.index import index_folder, open_cached, open_memory
from waylore.evaluation.folders.questions import FILES, list_folders
from waylore.evaluation.index import load_embedder
from waylore.evaluation.relations.measure import MeasuredSet, ask_questions, score_answers
from waylore.evaluation.relations.questions import SetQuestion, read_by_hand, write_questions
from waylore.evaluation.relations.structure import make_questions
from waylore.evaluation.run import show_progress
from waylore.evaluation.tables import format_markdown

MAX_EXAMPLES = 10  # examples of missing or wrong items, from dev
HEAD = [
    "from",
    "split",
    "folder",
    "questions",
    "things",
    "precision",
    "recall",
    "exact",
    "complete but not all",
    "unclear",
]


def run(options: argparse.Namespace) -> None:
    """Measure the folders of the options; print the tables, and write the questions and the answers."""
    answers: list[MeasuredSet] = []
    named = options.embedder or options.model
    with open_cached(
        load_embedder(options.embedder, options.model, options.name) if named else None, options.vectors
    ) as model:
        for folder in list_folders(options.folders, options.only):
            questions = [each for each in list_questions(folder) if options.split in ("", each.split)]
            with open_memory(folder / FILES, model, options.folder, options.store) as memory:
                index_folder(memory, folder / FILES, model)
                answers += ask_questions(memory, questions, show_progress(folder.name))
    if options.write:
        write_questions((answer.question for answer in answers), options.write)
    if options.json:
        rows = [answer.to_dict() for answer in answers]
        options.json.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    print(format_report(answers))


def list_questions(folder: Path) -> list[SetQuestion]:
    """Return the questions about a folder: made from its structure, and written by hand about its sentences."""
    return [*make_questions(folder, folder / FILES), *(each for each in read_by_hand() if each.folder == folder.name)]


def format_report(answers: Sequence[MeasuredSet]) -> str:
    """Return the table, and wrong examples from dev. Answers of test are only counted."""
    table = format_markdown(HEAD, list(_list_rows(answers)), names=3)
    wrong = [each for each in answers if each.question.split == "dev" and (each.missing or each.wrong)]
    examples = sorted(wrong, key=lambda each: (each.question.kind, each.question.order))
    lost = [_describe(each) for kind in ("sentences", "structure") for each in _take(examples, kind)]
    return "\n\n".join([table, *(["## Examples of dev\n\n" + "\n".join(lost)] if lost else [])])


def _list_rows(answers: Sequence[MeasuredSet]) -> Iterator[list[str]]:
    """Yield the figures by kind and split, then by folder."""
    folders = dict.fromkeys(each.question.folder for each in answers)
    for kind in ("structure", "sentences"):
        for split in ("dev", "test"):
            of_split = [each for each in answers if (each.question.kind, each.question.split) == (kind, split)]
            for folder in ("all", *folders):
                chosen = [each for each in of_split if folder in ("all", each.question.folder)]
                if chosen:
                    yield [kind, split, folder, *_format_scores(chosen)]


def _format_scores(answers: Sequence[MeasuredSet]) -> list[str]:
    scores = score_answers(answers)
    shares = (f"{share:.3f}" for share in (scores.precision, scores.recall, scores.exact))
    return [str(scores.questions), str(scores.things), *shares, str(scores.broken), str(scores.ambiguous)]


def _take(answers: Sequence[MeasuredSet], kind: str) -> list[MeasuredSet]:
    return [each for each in answers if each.question.kind == kind][:MAX_EXAMPLES]


def _describe(answer: MeasuredSet) -> str:
    question = answer.question
    lines = [f"- {question.folder}/{question.file}: {question.text}"]
    lines += [f"  missing: {', '.join(answer.missing)}"] if answer.missing else []
    lines += [f"  wrong: {', '.join(answer.wrong)}"] if answer.wrong else []
    return "\n".join(lines)

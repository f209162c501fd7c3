"""Measure folders: index each, ask its questions with every recipe, and score the rankings.

The result has all figures of the tables and the JSON; `report` and `to_json` write them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from waylore.evaluation.folders.ask import Answers, FolderAnswer, score_answers
from waylore.evaluation.folders.index import IndexCosts
from waylore.evaluation.folders.labels import LabelledPage, StoredPage, score_pages
from waylore.evaluation.folders.questions import FolderQuestion
from waylore.evaluation.folders.scoring import Scored, ScoreRow, SignTest, make_row, run_sign_test

ALL = "all"
BASELINE = "hybrid"
TYPES = ("lookup", "multi", "structure", "time")  # first in tables; others follow


@dataclass(slots=True)
class Measurement:
    """The questions of folders and their answers by method; `ungated` has answers without the gate.

    `earlier` are scores by method that were read from the JSON of earlier runs, by the name of the file.
    """

    embedder: str
    questions: list[FolderQuestion] = field(default_factory=list)
    answers: dict[str, dict[str, FolderAnswer]] = field(default_factory=dict)
    ungated: dict[str, dict[str, FolderAnswer]] = field(default_factory=dict)
    costs: dict[str, IndexCosts] = field(default_factory=dict)
    pages: list[tuple[LabelledPage, StoredPage]] = field(default_factory=list)
    earlier: dict[str, dict[str, Scored]] = field(default_factory=dict)

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, in the order in which they were asked."""
        return tuple(self.answers)

    @property
    def folders(self) -> tuple[str, ...]:
        """The names of the folders."""
        return tuple(dict.fromkeys(question.folder for question in self.questions))

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits of the questions; `all` follows unless there is exactly one."""
        found = tuple(sorted({question.split for question in self.questions} - {""}))
        return found if len(found) == 1 else (*found, ALL)

    @property
    def types(self) -> tuple[str, ...]:
        """The types of questions that have an answer."""
        found = {question.type for question in self.questions if question.has_answer}
        return (*(type_ for type_ in TYPES if type_ in found), *sorted(found - set(TYPES)))

    def select(self, *, folder: str = ALL, type_: str = ALL, split: str = ALL) -> list[FolderQuestion]:
        """Return the questions of a folder, a type and a split."""
        wanted = ((folder, "folder"), (type_, "type"), (split, "split"))
        return [q for q in self.questions if all(value in (ALL, getattr(q, name)) for value, name in wanted)]

    def score(self, method: str, questions: Iterable[FolderQuestion] | None = None) -> Scored:
        """Return the scores of a method on some questions, or on all."""
        return score_answers(self.questions if questions is None else list(questions), self.answers[method])


@dataclass(frozen=True, slots=True)
class GateFigures:
    """The decisions of a method's gate, and how often they were wrong, judged by the recall of each question.

    `harms` and `helps` count questions on which the graph would be worse and better than the baseline if the gate
    were always open. Of these, `harmed` are worse than the baseline with the gate, and `lost` are not better.
    """

    outcomes: Mapping[str, int]
    entities: float  # that a question names, on average
    harms: int
    harmed: int
    helps: int
    lost: int


def list_rows(measurement: Measurement, method: str) -> Iterator[tuple[str, str, str, ScoreRow]]:
    """Yield folder, type, split and figures of a method, for every combination that has questions."""
    scored = measurement.score(method)
    for folder in (ALL, *measurement.folders):
        for type_ in (ALL, *measurement.types):
            for split in dict.fromkeys((ALL, *measurement.splits)):
                asked = measurement.select(folder=folder, type_=type_, split=split)
                if found := [scored[question.id] for question in asked if question.id in scored]:
                    yield folder, type_, split, make_row(found)


def compare_methods(measurement: Measurement, split: str) -> dict[str, SignTest]:
    """Return the sign test of each method against the baseline."""
    asked = measurement.select(split=split)
    baseline = measurement.score(BASELINE, asked)
    others = [method for method in measurement.methods if method != BASELINE]
    return {method: run_sign_test(measurement.score(method, asked), baseline) for method in others}


def compare_earlier(measurement: Measurement, split: str) -> dict[tuple[str, str], SignTest]:
    """Return the sign test of each method against the same method in an earlier run."""
    asked = measurement.select(split=split)
    return {
        (method, name): run_sign_test(measurement.score(method, asked), scores[method])
        for name, scores in measurement.earlier.items()
        for method in measurement.methods
        if method in scores
    }


def measure_gate(measurement: Measurement, method: str, split: str) -> GateFigures:
    """Return the decisions of the gate of a method, and how often they were wrong."""
    asked = measurement.select(split=split)
    gated, ungated = measurement.answers[method], measurement.ungated[method]
    with_gate, without, baseline = (
        score_answers(asked, answers) for answers in (gated, ungated, measurement.answers[BASELINE])
    )
    harmful = [id_ for id_, scores in without.items() if scores.recall < baseline[id_].recall]
    helpful = [id_ for id_, scores in without.items() if scores.recall > baseline[id_].recall]
    outcomes = [gated[question.id].gate for question in asked]
    return GateFigures(
        {outcome: outcomes.count(outcome) for outcome in dict.fromkeys(("open", *sorted(outcomes)))},
        sum(len(gated[question.id].entities) for question in asked) / max(len(asked), 1),
        len(harmful),
        sum(with_gate[id_].recall < baseline[id_].recall for id_ in harmful),
        len(helpful),
        sum(with_gate[id_].recall <= baseline[id_].recall for id_ in helpful),
    )


def reports_relevance(measurement: Measurement) -> bool:
    """Return whether an answer reports whether its hits are relevant."""
    return any(one.is_relevant is not None for answers in measurement.answers.values() for one in answers.values())


def count_irrelevant(questions: Sequence[FolderQuestion], answers: Answers) -> int:
    """Return the number of answers that report no relevant hit."""
    return sum(answers[question.id].is_relevant is False for question in questions)


def to_json(measurement: Measurement) -> dict[str, Any]:
    """Return all figures and rankings as JSON. `../shared/folders/score.py` can read the rankings."""
    return {
        "embedder": measurement.embedder,
        "folders": {
            name: {**asdict(costs), "seconds_per_file": costs.seconds_per_file}
            for name, costs in measurement.costs.items()
        },
        "rows": [
            {"method": method, "folder": folder, "type": type_, "split": split, **asdict(row)}
            for method in measurement.methods
            for folder, type_, split, row in list_rows(measurement, method)
        ],
        "sign_tests": [
            {"split": split, "method": method, "against": BASELINE, **asdict(test)}
            for split in measurement.splits
            for method, test in compare_methods(measurement, split).items()
        ],
        "gates": [
            {"split": split, "method": method, **asdict(measure_gate(measurement, method, split))}
            for method in measurement.ungated
            for split in measurement.splits
        ],
        "pages": score_pages(measurement.pages),
        "stored": [{"folder": page.folder, "path": page.path, **asdict(kept)} for page, kept in measurement.pages],
        "questions": [asdict(question) for question in measurement.questions],
        "scores": {
            method: {id_: asdict(scores) for id_, scores in measurement.score(method).items()}
            for method in measurement.methods
        },
        "rankings": {
            method: [asdict(answer) for answer in answers.values()] for method, answers in measurement.answers.items()
        },
    }

"""Ask the questions of an indexed folder, and collect rankings and the decisions of the gate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from waylore.engine.waylore import Waylore
from waylore.errors import StoreUnavailable
from waylore.evaluation.folders.questions import FolderQuestion
from waylore.evaluation.folders.scoring import RankedHit, Scored, score_question
from waylore.evaluation.run import Progress, open_gate
from waylore.recipes import Recipe
from waylore.retrieval.search import NO_EMBEDDER
from waylore.types.search import GateOutcome, SearchResult

TOP_K = 10


@dataclass(frozen=True, slots=True)
class FolderAnswer:
    """The answer to a question. `is_relevant` is None if the search does not report it."""

    id: str
    hits: tuple[RankedHit, ...]
    gate: GateOutcome = "unused"
    confidence: float | None = None
    entities: tuple[str, ...] = ()
    is_relevant: bool | None = None


Answers = Mapping[str, FolderAnswer]  # by id of the question


def ask_questions(
    memory: Waylore, questions: Sequence[FolderQuestion], method: str | Recipe, progress: Progress = lambda *_: None
) -> dict[str, FolderAnswer]:
    """Ask every question with one method."""
    answers = {}
    for done, question in enumerate(questions, 1):
        result = memory.search(question.text, method=method, top_k=TOP_K, record_use=False)
        answers[question.id] = _make_answer(question, result)
        progress(done, len(questions))
    return answers


def ask_without_gate(
    memory: Waylore, questions: Sequence[FolderQuestion], recipe: Recipe, answers: Answers
) -> dict[str, FolderAnswer]:
    """Return the answers that a recipe would give if its gate were always open."""
    closed = [question for question in questions if answers[question.id].gate != "open"]
    return {**answers, **ask_questions(memory, closed, open_gate(recipe))}


def score_answers(questions: Sequence[FolderQuestion], answers: Answers) -> Scored:
    """Return the scores of the questions that have an answer."""
    asked = (question for question in questions if question.has_answer and question.id in answers)
    return {question.id: score_question(question, answers[question.id].hits) for question in asked}


def _make_answer(question: FolderQuestion, result: SearchResult) -> FolderAnswer:
    if missing := [reason for reason in result.missing if reason != NO_EMBEDDER]:
        raise StoreUnavailable(f"{question.id} has an incomplete answer ({'; '.join(missing)}); run it again")
    return FolderAnswer(
        question.id,
        tuple(RankedHit(hit.uri, hit.text, hit.score, str(hit.path or "")) for hit in result.hits),
        result.gate,
        result.confidence,
        tuple(entity.name for entity in result.entities),
        result.is_relevant,
    )

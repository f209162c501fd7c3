"""Ask for sets and compare them with the complete answers: precision, recall, and false claims of completeness."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from waylore.engine.waylore import Waylore
from waylore.evaluation.relations.questions import Answer, SetQuestion
from waylore.text import normalise
from waylore.types.relations import RelatedFact

LIMIT = 1_000  # facts of an answer


@dataclass(frozen=True, slots=True)
class MeasuredSet:
    """An answer: the right things, the wrong things, the missing ones, and whether it claims to be complete."""

    question: SetQuestion
    right: tuple[str, ...]
    wrong: tuple[str, ...]
    missing: tuple[str, ...]
    is_complete: bool
    is_ambiguous: bool

    @property
    def is_broken(self) -> bool:
        """Whether it claims to be complete although something is missing."""
        return self.is_complete and bool(self.missing)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values."""
        return {"text": self.question.text, **asdict(self)}


@dataclass(frozen=True, slots=True)
class SetScores:
    """The figures of some answers: the shares of right things among found ones and of found things among right ones."""

    questions: int
    things: int
    precision: float
    recall: float
    exact: float
    broken: int
    ambiguous: int


def ask_questions(
    memory: Waylore, questions: Sequence[SetQuestion], progress: Callable[[int, int], None] = lambda *_: None
) -> list[MeasuredSet]:
    """Ask questions about an indexed folder."""
    answers = []
    for number, question in enumerate(questions, 1):
        answers.append(_ask(memory, question))
        progress(number, len(questions))
    return answers


def _ask(memory: Waylore, question: SetQuestion) -> MeasuredSet:
    found = memory.related(question.entity, predicates=[question.predicate], direction=question.direction, limit=LIMIT)
    spellings = [_list_names(fact) for fact in found.facts]
    wanted = [frozenset(map(normalise, answer)) for answer in question.answers]
    things = {min(names): names for names in (frozenset(map(normalise, each)) for each in spellings) if names}
    shown = {normalise(name): name for each in spellings for name in each}
    right = [answer for answer, names in zip(question.answers, wanted, strict=True) if _has(things.values(), names)]
    wrong = [shown[key] for key, names in things.items() if not _has(wanted, names)]
    missing = [answer[0] for answer in question.answers if answer not in right]
    is_ambiguous = bool(found.candidates)
    names = tuple(answer[0] for answer in right)
    return MeasuredSet(question, names, tuple(wrong), tuple(missing), found.complete and not is_ambiguous, is_ambiguous)


def _has(things: Iterable[frozenset[str]], names: frozenset[str]) -> bool:
    return any(thing & names for thing in things)


def _list_names(fact: RelatedFact) -> Answer:
    """Return the names of the other end of a fact: the stated name, and the name of its entity."""
    stated = fact.assertion.fact
    end = stated.object if fact.is_forward else stated.subject
    return (end, fact.entity.name, *fact.entity.aliases) if fact.entity else (end,)


def score_answers(answers: Sequence[MeasuredSet]) -> SetScores:
    """Return the figures of answers."""
    right, wrong, missing = (
        sum(len(getattr(each, name)) for each in answers) for name in ("right", "wrong", "missing")
    )
    return SetScores(
        questions=len(answers),
        things=right + missing,
        precision=right / max(right + wrong, 1),
        recall=right / max(right + missing, 1),
        exact=sum(not each.wrong and not each.missing for each in answers) / max(len(answers), 1),
        broken=sum(each.is_broken for each in answers),
        ambiguous=sum(each.is_ambiguous for each in answers),
    )

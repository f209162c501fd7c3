"""Questions about a relation, with the complete set of their answers.

A file of questions has one JSON object per line: `folder`, `file`, `split`, `entity`, `predicate`, `direction` (`out`
from subject to object, `in` from object to subject) and `answers`. An answer with several spellings is a list of them.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from waylore.text import normalise

Direction = Literal["in", "out"]
Kind = Literal["structure", "sentences"]
Answer = tuple[str, ...]  # the spellings of one thing
DEV, TEST = "dev", "test"
BY_HAND = "sentences.jsonl"


@dataclass(frozen=True, slots=True)
class SetQuestion:
    """A question for the things related to an entity by a predicate, the file that states them, and all answers."""

    folder: str
    file: str
    split: str
    entity: str
    predicate: str
    direction: Direction
    answers: tuple[Answer, ...]
    kind: Kind = "structure"

    @property
    def text(self) -> str:
        """The question as an arrow."""
        arrow = f"—{self.predicate}→" if self.direction == "out" else f"←{self.predicate}—"
        return f"{self.entity} {arrow} ?"

    @property
    def order(self) -> str:
        """A hash that decides which of many questions are chosen."""
        return sha256(f"{self.folder}/{self.file} {self.text}".encode()).hexdigest()


def choose_split(file: str) -> str:
    """Return the split of the questions about a file: a hash of its path decides."""
    return TEST if sha256(file.encode()).digest()[0] % 2 else DEV


def read_by_hand() -> tuple[SetQuestion, ...]:
    """Return the questions about sentences, which were written by hand."""
    text = files("waylore.evaluation.relations").joinpath(BY_HAND).read_text("utf-8")
    return tuple(_make_question(json.loads(line), "sentences") for line in text.splitlines())


def write_questions(questions: Iterable[SetQuestion], file: Path) -> None:
    """Write questions, one JSON object per line."""
    lines = (json.dumps(asdict(question), ensure_ascii=False) + "\n" for question in questions)
    file.write_text("".join(lines), encoding="utf-8")


def _make_question(row: dict[str, Any], kind: Kind) -> SetQuestion:
    answers = tuple((each,) if isinstance(each, str) else tuple(each) for each in row["answers"])
    named = {name: row[name] for name in ("folder", "file", "split", "entity", "predicate", "direction")}
    return SetQuestion(**named, answers=answers, kind=kind)


def group_answers(names: Sequence[Answer]) -> tuple[Answer, ...]:
    """Return answers without repeated ones, in their order."""
    return tuple({normalise(each[0]): each for each in reversed(names) if normalise(each[0])}.values())[::-1]

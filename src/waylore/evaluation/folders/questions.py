"""Read questions about the files of a folder, with the passages that answer them.

A file of questions has one JSON object per line: `question`, and `gold`, the list of all passages that are needed. A
passage is a `path` in the folder and a `quote` from the file; without a quote the whole file counts. `alternatives` has
a list for each passage, of other places with the same content. A question with empty `gold` has no answer in the
folder. `id`, `type` and `split` group the figures. This module neither searches nor scores.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waylore.errors import ConfigError, NotFound

QUESTIONS = "questions.jsonl"
FILES = "files"
NO_ANSWER = "none"  # the type of questions that the folder does not answer
EXAMPLE = '{"question": "Who owns billing?", "gold": [{"path": "teams.md", "quote": "billing belongs to"}]}'


@dataclass(frozen=True, slots=True)
class GoldPassage:
    """A place that answers a question: words of a file, or the whole file if `quote` is empty."""

    path: str
    quote: str = ""


@dataclass(frozen=True, slots=True)
class FolderQuestion:
    """A question about a folder. It needs every item of `gold`, each in one of several places."""

    id: str
    text: str
    gold: tuple[tuple[GoldPassage, ...], ...]
    type: str = "lookup"
    split: str = ""
    folder: str = ""

    @property
    def has_answer(self) -> bool:
        """True if the folder answers the question."""
        return bool(self.gold)


def list_folders(directory: Path, only: Sequence[str] = ()) -> list[Path]:
    """Return the folders of a directory that have files and questions, by name."""
    found = {path.parent.name: path.parent for path in sorted(directory.glob(f"*/{QUESTIONS}"))}
    if not found:
        raise NotFound(f"no folder with {FILES}/ and {QUESTIONS} in {directory}; pass the directory that has them")
    if unknown := sorted(set(only) - set(found)):
        raise NotFound(f"no folder {', '.join(unknown)} in {directory}; it has {', '.join(found)}")
    return [path for name, path in found.items() if not only or name in only]


def read_questions(file: Path, folder: str = "") -> tuple[FolderQuestion, ...]:
    """Read a file of questions. An error names the line that cannot be read."""
    try:
        lines = file.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise NotFound(f"{file} cannot be read ({error}); pass a file of JSON lines in UTF-8") from error
    found = tuple(_parse(file, number, line, folder) for number, line in enumerate(lines, 1) if line.strip())
    if not found:
        raise ConfigError(f"{file} has no questions; write one a line: {EXAMPLE}")
    counts = Counter(question.id for question in found)
    if repeated := [id_ for id_, count in counts.items() if count > 1]:
        raise ConfigError(f"{file}: several questions have the id {repeated[0]}; give each its own, or none")
    return found


def _parse(file: Path, number: int, line: str, folder: str) -> FolderQuestion:
    try:
        return _make_question(json.loads(line), number, folder)
    except ValueError as error:
        raise ConfigError(f"{file}, line {number}: {error}; write {EXAMPLE}") from error


def _make_question(row: Any, number: int, folder: str) -> FolderQuestion:
    if not isinstance(row, dict):
        raise ValueError("it is no JSON object")
    text, gold = row.get("question"), list(_make_passages(row.get("gold")))
    if not isinstance(text, str) or not text.strip():
        raise ValueError("question must be a text")
    others = row.get("alternatives") or [[] for _ in gold]
    if not isinstance(others, list) or len(others) != len(gold):
        raise ValueError("alternatives must have a list for each passage of gold")
    return FolderQuestion(
        id=str(row.get("id", number)),
        text=text,
        gold=tuple((one, *_make_passages(several)) for one, several in zip(gold, others, strict=True)),
        type=str(row.get("type", "lookup" if gold else NO_ANSWER)),
        split=str(row.get("split", "")),
        folder=folder,
    )


def _make_passages(rows: Any) -> Iterator[GoldPassage]:
    if not isinstance(rows, list):
        raise ValueError("gold must be a list, empty if the folder has no answer")
    for row in rows:
        path, quote = (row.get("path"), row.get("quote", "")) if isinstance(row, dict) else (None, "")
        if not isinstance(path, str) or not isinstance(quote, str):
            raise ValueError("each item of gold must have a path, and a quote if not the whole file counts")
        yield GoldPassage(path, quote)

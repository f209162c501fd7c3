"""Write a set once as JSON lines that every peer reads: passages with their triples, and questions with gold and answers.

Of a benchmark set there are 100 questions and at most 1,500 pages, all gold among them; of LoCoMo the first conversations
that have no more turns together, searched without a filter. A folder has the passages that Waylore reads from its files,
and its test questions.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.peers.adapters.frame import PeerPassage, Triple, read_lines, read_passages
from waylore.engine.waylore import Waylore
from waylore.errors import NotFound
from waylore.evaluation.contexts.questions import (
    ContextQuestion,
    SupportingText,
    list_folder_questions,
    list_set_questions,
    list_turn_questions,
    read_answers,
    read_marks,
)
from waylore.evaluation.conversations.datasets import SETS, ConversationSet, read_conversations
from waylore.evaluation.datasets import limit_pages, read_dataset, read_rows, spread
from waylore.evaluation.folders.questions import FILES, QUESTIONS, FolderQuestion, read_questions
from waylore.evaluation.folders.scoring import RankedHit, has_passage, normalise_path
from waylore.text import normalise
from waylore.types.knowledge import Document, IndexedDocument, Passage

LIMITS = {"questions": 100, "passages": 1_500}
PASSAGES_PER_QUESTION = 20
TURNS_PER_QUESTION = 50  # a turn is short, and a thousand tokens hold more than twenty
DOCUMENTS_PER_PAGE = 1_000
Gold = tuple[tuple[str, ...], ...]  # the places of each thing that is needed, as ids of passages


@dataclass(frozen=True, slots=True)
class PeerQuestion:
    """A question with the passages that it needs, and what its context must show."""

    asked: ContextQuestion
    gold: Gold


@dataclass(frozen=True, slots=True)
class PeerSet:
    """Passages, questions, and the number of passages that a peer returns for each."""

    name: str
    passages: tuple[PeerPassage, ...]
    questions: tuple[PeerQuestion, ...]
    limit: int = PASSAGES_PER_QUESTION


def read_source(name: str, data: Path, folders: Path) -> PeerSet:
    """Read a set from the data, or a folder of the folders, by name."""
    if name in SETS:
        return read_turns(data / name)
    if (data / name).exists():
        return read_pages(data / name)
    if (folders / name).exists():
        return read_folder(folders / name)
    raise NotFound(f"no set {name} in {data} and no folder {name} in {folders}; pass --data and --folders")


def read_pages(folder: Path, limits: Mapping[str, int] = LIMITS) -> PeerSet:
    """Read a sample of a benchmark set."""
    dataset = limit_pages(read_dataset(folder, sample=limits["questions"]), limits["passages"])
    kept = {page.document.uri for page in dataset.pages}
    triples = {row["passage_id"]: row for row in read_rows(folder / "triples.jsonl.gz")}
    rows = [row for row in read_rows(folder / "corpus.jsonl.gz") if row["id"] in kept]
    questions = list_set_questions(dataset, read_answers(folder), read_marks(folder))
    return PeerSet(
        folder.name,
        tuple(_make_passage(row, triples.get(row["id"], {})) for row in rows),
        tuple(PeerQuestion(each, tuple((page,) for page in sorted(each.gold))) for each in questions),
    )


def _make_passage(row: Mapping[str, Any], annotations: Mapping[str, Any]) -> PeerPassage:
    triples = tuple(normalise_triples(annotations.get("triples", ())))
    names = filter(None, map(normalise, annotations.get("entities", ())))
    return PeerPassage(row["id"], row["title"], row["text"], row["id"], triples, tuple(dict.fromkeys(names)))


def normalise_triples(triples: Iterable[Sequence[str]]) -> Iterator[Triple]:
    """Yield triples with names in small letters, as Waylore stores them. The embedder does not see capitals."""
    for subject, predicate, object_ in triples:
        if normalise(subject) and normalise(predicate) and normalise(object_):
            yield normalise(subject), predicate, normalise(object_)


def read_turns(folder: Path, limits: Mapping[str, int] = LIMITS) -> PeerSet:
    """Read the first conversations of LoCoMo that have few enough turns, and some of their questions."""
    whole = read_conversations(folder)
    users: list[str] = []
    for user in dict.fromkeys(turn.document.user for turn in whole.turns):
        if sum(turn.document.user in {*users, user} for turn in whole.turns) <= limits["passages"]:
            users.append(user)
    turns = tuple(turn for turn in whole.turns if turn.document.user in users)
    asked = [question for question in whole.questions if question.user in users]
    dataset = ConversationSet(whole.name, turns, tuple(spread(asked, limits["questions"])))
    passages = tuple(_make_turn(turn.document, turn.passages[0]) for turn in turns)
    questions = list_turn_questions(dataset, read_answers(folder))
    found = tuple(PeerQuestion(each, tuple((turn,) for turn in sorted(each.gold))) for each in questions)
    return PeerSet(whole.name, passages, found, TURNS_PER_QUESTION)


def _make_turn(document: Document, passage: Passage) -> PeerPassage:
    at = passage.at.isoformat() if passage.at else ""
    id_ = document.uri
    return PeerPassage(id_, "", passage.text, id_, speaker=passage.speaker, session=document.session, at=at)


def cut_set(found: PeerSet, name: str, questions: int, passages: int) -> PeerSet:
    """Return a part of a set: so many of its questions, the passages that they need, and others evenly spread."""
    asked = tuple(spread(found.questions, questions))
    gold = {id_ for question in asked for places in question.gold for id_ in places}
    others = [passage.id for passage in found.passages if passage.id not in gold]
    kept = gold.union(spread(others, max(passages - len(gold), 1)))
    return PeerSet(name, tuple(each for each in found.passages if each.id in kept), asked, found.limit)


def read_folder(folder: Path) -> PeerSet:
    """Read the passages of a folder as Waylore reads its files, and its test questions."""
    files = folder / FILES
    passages = tuple(_read_files(files))
    asked = [question for question in read_questions(folder / QUESTIONS, folder.name) if question.split == "test"]
    answered = [question for question in asked if question.has_answer]
    pairs = zip(list_folder_questions(answered), answered, strict=True)
    questions = tuple(PeerQuestion(each, tuple(_find_places(question, passages))) for each, question in pairs)
    return PeerSet(folder.name, passages, questions)


def _read_files(files: Path) -> Iterator[PeerPassage]:
    with TemporaryDirectory() as place, Waylore.open(Path(place) / "folder.waylore") as memory:
        memory.add_files(files, root=files)
        after = None
        while page := memory.documents(after=after, limit=DOCUMENTS_PER_PAGE):
            for document in page:
                yield from _list_passages(memory.get(document.id), files)
            after = page[-1]


def _list_passages(indexed: IndexedDocument, files: Path) -> Iterator[PeerPassage]:
    """Yield the passages of a file with the facts that Waylore's rules read in each."""
    told = [(f.passage_id, (f.subject, f.predicate, f.object)) for f in indexed.facts]
    for passage in indexed.passages:
        yield PeerPassage(
            passage.id,
            passage.title or indexed.document.title,
            passage.text,
            normalise_path(indexed.document.uri),
            tuple(normalise_triples(triple for id_, triple in told if id_ == passage.id)),
            root=str(files.resolve()),
        )


def _find_places(question: FolderQuestion, passages: Sequence[PeerPassage]) -> Iterator[tuple[str, ...]]:
    """Yield for each thing that a question needs the passages that have it."""
    for places in question.gold:
        wanted = {normalise_path(place.path) for place in places}
        near = [(each.id, RankedHit(each.page, each.text)) for each in passages if each.page in wanted]
        yield tuple(id_ for id_, hit in near if any(has_passage(hit, place) for place in places))


def write_set(found: PeerSet, folder: Path) -> None:
    """Write a set to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    _write_lines(folder / "passages.jsonl", map(asdict, found.passages))
    _write_lines(folder / "questions.jsonl", map(_to_row, found.questions))
    (folder / "set.json").write_text(json.dumps({"name": found.name, "limit": found.limit}), encoding="utf-8")


def _write_lines(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def _to_row(question: PeerQuestion) -> dict[str, Any]:
    asked = question.asked
    support = [[asdict(place) for place in places] for places in asked.support]
    row = {"id": asked.id, "question": asked.text, "gold": question.gold, "pages": sorted(asked.gold)}
    return {**row, "answers": asked.answers, "support": support}


def read_set(folder: Path) -> PeerSet:
    """Read a set that `write_set` wrote."""
    if not (folder / "set.json").exists():
        raise NotFound(f"{folder} has no set; run `python -m benchmarks.peers prepare` first")
    meta = json.loads((folder / "set.json").read_text("utf-8"))
    questions = tuple(map(_from_row, read_lines(folder / "questions.jsonl")))
    return PeerSet(meta["name"], tuple(read_passages(folder)), questions, meta["limit"])


def _from_row(row: Mapping[str, Any]) -> PeerQuestion:
    support = tuple(
        tuple(SupportingText(place["page"], tuple(place["sentences"])) for place in places) for places in row["support"]
    )
    asked = ContextQuestion(row["id"], row["question"], frozenset(row["pages"]), tuple(row["answers"]), support)
    return PeerQuestion(asked, tuple(map(tuple, row["gold"])))

"""Make the turns of any number of users from real ones, and write them: `benchmarks.users` measures them.

Each turn is one of LoCoMo with a few words of its own, so that no two texts are equal. Its vector is that of the real
turn, moved by as much as two turns about the same thing differ. Names and facts are those of the real turn. Texts are
extracted and embedded once. Turns are written as `Waylore.remember` writes them, many users in one transaction.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from zlib import crc32

import numpy as np
import numpy.typing as npt

from benchmarks.corpus import Matrix
from waylore.evaluation.conversations.datasets import read_conversations
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.indexing.memory.turns import Turn, make_turns, remember_turns
from waylore.protocols import Embedder, Extraction
from waylore.store.protocol import Store
from waylore.types.author import OWNER
from waylore.types.knowledge import Document, Passage, Vector
from waylore.types.messages import Message

BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
SESSION_TURNS = 25
BATCH_TURNS = 250  # in one transaction
DRIFT = 0.5  # length of the difference between the vector of a turn and that of the real one
OWN = " | "  # before the words of its own


def get_real_text(text: str) -> str:
    """Return the text of LoCoMo that a turn was made from."""
    return text.partition(OWN)[0]


@dataclass
class MovingEmbedder:
    """An embedder that embeds each real text once, and moves the vector of each turn a little."""

    embedder: Embedder
    _known: dict[str, Vector] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.embedder.name

    @property
    def dimension(self) -> int:
        """The number of dimensions."""
        return self.embedder.dimension

    def embed_passages(self, texts: Sequence[str]) -> Matrix:
        """Return a vector for each text."""
        real = [get_real_text(text) for text in texts]
        new = [text for text in dict.fromkeys(real) if text not in self._known]
        self._known |= dict(zip(new, self.embedder.embed_passages(new), strict=True)) if new else {}
        return np.stack([_move(self._known[known], text) for known, text in zip(real, texts, strict=True)])

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a question."""
        return self.embedder.embed_query(text)


def _move(vector: Vector, text: str) -> Vector:
    """Return the vector of a turn; names and statements have no words of their own."""
    if OWN not in text:
        return vector
    drift = np.random.default_rng(crc32(text.encode())).normal(size=len(vector))
    moved: npt.NDArray[np.float64] = vector + DRIFT * drift / np.linalg.norm(drift) * np.linalg.norm(vector)
    return (moved / np.linalg.norm(moved)).astype(np.float32)


@dataclass
class KnowingExtractor:
    """An extractor that extracts each real text once."""

    extractor: RuleExtractor = field(default_factory=RuleExtractor)
    _known: dict[str, Sequence[Extraction]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the extractor."""
        return self.extractor.name

    @property
    def concurrency(self) -> int:
        """The number of documents at a time."""
        return self.extractor.concurrency

    def extract(self, document: Document, passages: Sequence[Passage]) -> Sequence[Extraction]:
        """Return the extraction of each passage."""
        text = get_real_text(passages[0].text)
        if len(passages) > 1:
            return self.extractor.extract(document, passages)
        if text not in self._known:
            self._known[text] = self.extractor.extract(document, [replace(passages[0], text=text)])
        return self._known[text]


class Talk:
    """The turns of users, made from the turns of LoCoMo, and questions about these."""

    def __init__(self, folder: Path, embedder: Embedder) -> None:
        dataset = read_conversations(folder / "locomo")
        self._passages = [turn.passages[0] for turn in dataset.turns]
        self.questions = [question.text for question in dataset.questions]
        self.embedder = MovingEmbedder(embedder)
        self.extractor = KnowingExtractor()

    def write(self, store: Store, users: Sequence[str], turns: int) -> Iterator[int]:
        """Write this number of turns for each user, session by session; yield how many are written so far."""
        told = self._make_all(users, turns)
        written = 0
        while batch := list(islice(told, BATCH_TURNS)):
            remember_turns(store, self.embedder, self.extractor, batch, (), author=OWNER)
            written += len(batch)
            yield written

    def _make_all(self, users: Sequence[str], turns: int) -> Iterator[Turn]:
        for first in range(0, turns, SESSION_TURNS):
            for user in users:
                yield from self.make_session(user, first, min(SESSION_TURNS, turns - first))

    def make_session(self, user: str, first: int, count: int) -> list[Turn]:
        """Make the turns of a session of a user; the same arguments make the same turns."""
        at = BEGIN + timedelta(hours=first)
        frame = Document("", source="conversation", user=user, session=f"session {first}", at=at, recorded_at=at)
        return make_turns([self._make_message(user, first + place) for place in range(count)], frame, at)

    def make_messages(self, user: str, first: int, count: int) -> list[dict[str, str]]:
        """Make messages as a client sends them."""
        made = [self._make_message(user, first + place) for place in range(count)]
        return [{"role": each.role, "content": each.content, "name": each.name} for each in made]

    def _make_message(self, user: str, place: int) -> Message:
        begin = crc32(user.encode()) % len(self._passages)
        passage = self._passages[(begin + place) % len(self._passages)]
        words = np.random.default_rng(crc32(f"{user} {place}".encode())).integers(0, 5_000, 3)
        own = " ".join(f"own{number}" for number in words.tolist())
        return Message("user", f"{passage.text}{OWN}{own}", name=passage.speaker)

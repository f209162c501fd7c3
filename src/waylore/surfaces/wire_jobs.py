"""Jobs as they go over the wire: how far one is, and what became of it."""

from datetime import datetime
from typing import Self

from pydantic import Field

from waylore.store import jobs
from waylore.store.jobs import Kind, State
from waylore.surfaces.wire import Added, Imported, Wire


class Progress(Wire):
    """How much is written so far, of how much; what a kind of job does not count is 0."""

    files: int = 0
    of_files: int = 0
    bytes: int = 0
    of_bytes: int = 0
    documents: int = 0
    of_documents: int = 0
    passages: int = 0
    facts: int = 0
    vectors: int = 0
    seconds: float = 0.0


class Emptied(Wire):
    """How many documents were forgotten."""

    documents: int


class Reembedded(Wire):
    """How many vectors were made, and by which model."""

    vectors: int
    model: str


class Job(Wire):
    """Something that is done in the background; `problem` says why it failed, or what it waits for."""

    id: str
    collection: str
    kind: Kind
    uri: str = Field(description="what was uploaded, for those that have it")
    state: State
    progress: Progress
    result: Added | Imported | Emptied | Reembedded | None
    problem: str
    runs: int = Field(description="how often it was begun: more than once, if it was interrupted")
    made_at: datetime
    began_at: datetime | None
    ended_at: datetime | None

    @classmethod
    def of(cls, thing: object) -> Self:
        """The same, for the wire."""
        assert isinstance(thing, jobs.Job)  # noqa: S101
        told = {name: getattr(thing, name) for name in cls.model_fields if name != "uri"}
        return cls.model_validate({**told, "uri": thing.work.get("uri", "")})


class Jobs(Wire):
    """Jobs of a collection, the newest first; `next` is the cursor of the next page, null on the last."""

    jobs: list[Job]
    next: str | None

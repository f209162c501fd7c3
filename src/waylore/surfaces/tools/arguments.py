"""What an agent's tools take, as models whose schemas a language model reads; every description is for it."""

from pydantic import BaseModel, ConfigDict, Field

from waylore.types.knowledge import Source

TOKENS = 4_000  # S9
LEAST_TOKENS = 400  # in which every answer can say at least what it left out


class Arguments(BaseModel):
    """What every tool's arguments are: closed, so that a misspelt one is told."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Budgeted(Arguments):
    """Arguments of a tool whose answer may be long."""

    max_tokens: int = Field(default=TOKENS, ge=LEAST_TOKENS, le=100_000, description="The longest answer.")


class Search(Budgeted):
    """What `memory_search` takes (S10)."""

    query: str = Field(
        min_length=1, description="A question or keywords. Names of people and things help most."
    )
    max_results: int = Field(
        default=10, ge=1, le=100, description="Passages of plain search; the graph may add as many again."
    )
    use_graph: bool = Field(default=True, description="Follow facts to passages that plain search misses.")
    min_graph_score: float | None = Field(
        default=None, ge=0, le=1, description="Drop passages that only the graph added and that score less."
    )


class Get(Budgeted):
    """What `memory_get` takes."""

    id: str = Field(min_length=1, description="A document_id or passage_id of a hit.")
    offset: int = Field(default=0, ge=0, description="Where to read on: next_offset of the last answer.")


class Told(Arguments):
    """A fact, by names."""

    subject: str = Field(min_length=1)
    predicate: str = Field(min_length=1, description="A short verb, such as works_at.")
    object: str = Field(min_length=1)


class Add(Arguments):
    """What `memory_add` takes."""

    text: str = Field(min_length=1, description="What to remember, in full sentences that name who and what.")
    title: str = Field(default="", description="A few words.")
    facts: tuple[Told, ...] = Field(default=(), description="What it states; found in the text if left out.")
    source: Source = Field(
        default="conversation", description="user_edit if the user himself corrects or dictates something."
    )


class Forget(Budgeted):
    """What `memory_forget` takes."""

    documents: tuple[str, ...] = Field(min_length=1, max_length=100, description="document_id of hits.")


class Question(Arguments):
    """What research clients' `search` takes."""

    query: str = Field(min_length=1, description="A question or keywords.")


class Fetch(Arguments):
    """What research clients' `fetch` takes."""

    id: str = Field(min_length=1, description="An id from search.")

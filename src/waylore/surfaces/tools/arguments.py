"""Define the arguments of an agent's tools as models. A language model reads their schemas and descriptions."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from waylore.lengths import MAX_PATH, MAX_QUERY, MAX_TEXT, MAX_TITLE, MAX_TOOL_FACTS
from waylore.types.knowledge import Source
from waylore.types.messages import Role
from waylore.types.relations import Direction
from waylore.types.search import GroupBy

DEFAULT_TOKENS = 4_000  # S9
PROFILE_TOKENS = 1_000  # tokens of a profile, which an agent reads at the start of a session
MIN_TOKENS = 400  # minimum tokens, enough to report what an answer leaves out
MAX_MESSAGES = 200  # maximum in one call
DAY = 'An ISO date, or words such as "last week".'


class Arguments(BaseModel):
    """The base of all arguments: an unknown argument is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Budgeted(Arguments):
    """Arguments of a tool whose answer may be long."""

    max_tokens: int = Field(
        default=DEFAULT_TOKENS, ge=MIN_TOKENS, le=100_000, description="Maximum length of the answer in tokens."
    )


class Search(Budgeted):
    """The arguments of `memory_search` (S10)."""

    query: str = Field(
        min_length=1, max_length=MAX_QUERY, description="A question or keywords. Names of people and things help most."
    )
    max_results: int | None = Field(
        default=None,
        ge=1,
        le=100,
        description="Number of passages (10 if not set otherwise on the server).",
    )
    use_graph: bool = Field(default=True, description="Follow facts to passages that plain search misses.")
    min_graph_score: float | None = Field(
        default=None, ge=0, le=1, description="Drop passages that only the graph added and that score less."
    )
    min_similarity: float | None = Field(
        default=None, ge=-1, le=1, description="Drop passages whose cosine with the query is lower."
    )
    rerank: bool | None = Field(default=None, description="Reorder the passages with the server's reranker.")
    method: str | None = Field(
        default=None,
        max_length=MAX_TITLE,
        description="vector, keyword, hybrid, graph or auto (auto if not set otherwise on the server).",
    )

    session: str = Field(default="", max_length=MAX_TITLE, description="Only what was said in this session.")
    since: str = Field(default="", max_length=MAX_TITLE, description=f"Only what was said from then on. {DAY}")
    until: str = Field(default="", max_length=MAX_TITLE, description=f"Only what was said before the end of it. {DAY}")
    as_of: str = Field(default="", max_length=MAX_TITLE, description=f"What was known and held then. {DAY}")
    group_by: GroupBy = Field(default="turn", description="session: only the best turn of each session.")
    explain: bool = Field(default=False, description="Also show ids, scores, paths and facts.")


class Get(Budgeted):
    """The arguments of `memory_get`."""

    id: str = Field(min_length=1, max_length=MAX_PATH, description="The mark of a hit, or the id of a document.")
    offset: int = Field(default=0, ge=0, description="Character to start from: next_offset of the previous answer.")
    around: int = Field(default=0, ge=0, le=20, description="Number of turns before and after it to show.")


class GetProfile(Arguments):
    """The arguments of `memory_profile`."""

    max_tokens: int = Field(
        default=PROFILE_TOKENS, ge=MIN_TOKENS, le=100_000, description="Maximum length of the answer in tokens."
    )


class GetChanges(Budgeted):
    """The arguments of `memory_changes`."""

    since: str = Field(default="", max_length=MAX_TITLE, description=f"Only from then on. {DAY}")
    until: str = Field(default="", max_length=MAX_TITLE, description=f"Only before the end of it. {DAY}")
    entity: str = Field(
        default="", max_length=MAX_TITLE, description="A name: show all that was ever said of it, with the periods."
    )


class AskGraph(Budgeted):
    """The arguments of `memory_graph`."""

    entity: str = Field(default="", max_length=MAX_TITLE, description="The name or id of the entity to start at.")
    to: str = Field(
        default="",
        max_length=MAX_TITLE,
        description="With entity: find how the two are connected. Without: list what relates to this one.",
    )
    predicate: str = Field(
        default="",
        max_length=MAX_TITLE,
        description="Only facts that state this relation, such as depends on; other words for it are found too.",
    )
    direction: Direction = Field(
        default="both", description="in: facts that lead to the entity; out: facts that lead from it."
    )
    hops: int = Field(default=1, ge=1, le=6, description="How many facts away.")
    type: str = Field(default="", max_length=MAX_TITLE, description="Without entity: list entities of this type.")
    after: str = Field(default="", max_length=MAX_TITLE, description="The cursor of the page before, in a list.")
    limit: int = Field(default=50, ge=1, le=1_000, description="Number of facts or entities to show.")


class FactArgument(Arguments):
    """A fact, by names."""

    subject: str = Field(min_length=1, max_length=MAX_TITLE, description="A name, or user for the person who speaks.")
    predicate: str = Field(
        min_length=1, max_length=MAX_TITLE, description="A short verb, such as works_at; not works_at if it ended."
    )
    object: str = Field(min_length=1, max_length=MAX_TITLE)
    since: str = Field(default="", max_length=MAX_TITLE, description="When it began, if not now.")
    until: str = Field(default="", max_length=MAX_TITLE, description="Its last day, if it is known.")


class Add(Arguments):
    """The arguments of `memory_add`."""

    text: str = Field(
        min_length=1, max_length=MAX_TEXT, description="What to remember, in full sentences that name who and what."
    )
    title: str = Field(default="", max_length=MAX_TITLE, description="A few words.")
    facts: tuple[FactArgument, ...] = Field(
        default=(),
        max_length=MAX_TOOL_FACTS,
        description="The facts that the text states; extracted from the text if left out.",
    )
    source: Source = Field(
        default="conversation", description="Use user_edit if the user corrects or dictates something."
    )


class MessageArgument(Arguments):
    """A message of a conversation."""

    role: Role = "user"
    content: str = Field(min_length=1, max_length=MAX_TEXT)
    name: str = Field(default="", max_length=MAX_TITLE, description="Who said it, if it was not the user.")
    at: str = Field(default="", max_length=MAX_TITLE, description="When it was said: ISO date and time.")
    id: str = Field(default="", max_length=MAX_TITLE)


class Remember(Arguments):
    """The arguments of `memory_remember`."""

    text: str = Field(default="", max_length=MAX_TEXT, description="What the user said, if it is one message.")
    messages: tuple[MessageArgument, ...] = Field(
        default=(), max_length=MAX_MESSAGES, description="Messages in the order in which they were said."
    )
    facts: tuple[FactArgument, ...] = Field(
        default=(),
        max_length=MAX_TOOL_FACTS,
        description="The facts that the last message states; extracted from the text if left out.",
    )
    session: str = Field(
        default="", max_length=MAX_TITLE, description="A name of this conversation, the same each time."
    )
    at: str = Field(default="", max_length=MAX_TITLE, description=f"When it was said, if not now. {DAY}")
    expires: str = Field(default="", max_length=MAX_TITLE, description="Hide it from this ISO date on.")


class Forget(Budgeted):
    """The arguments of `memory_forget`."""

    documents: tuple[Annotated[str, Field(max_length=MAX_PATH)], ...] = Field(
        default=(), max_length=100, description="The marks of hits, or ids of documents."
    )
    matching: str = Field(default="", max_length=MAX_TITLE, description="Everything that contains these words.")
    session: str = Field(default="", max_length=MAX_TITLE, description="Everything of this session.")
    since: str = Field(default="", max_length=MAX_TITLE, description=f"Everything from then on. {DAY}")
    until: str = Field(default="", max_length=MAX_TITLE, description=f"Everything before the end of it. {DAY}")
    dry_run: bool = Field(default=True, description="Without ids: only say what would be forgotten.")


class SearchDocuments(Arguments):
    """The arguments of `search` for research clients."""

    query: str = Field(min_length=1, max_length=MAX_QUERY, description="A question or keywords.")


class Fetch(Arguments):
    """The arguments of `fetch` for research clients."""

    id: str = Field(min_length=1, max_length=MAX_PATH, description="An id from search.")

"""Check and convert the arguments of the public API, in one place.

Every function takes the argument's name and value, and returns the value that the engine uses. A wrong value raises an
ArgumentError that names the argument and the remedy. None means "not given" if a default exists. This module does not
read the store.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from waylore.config import CacheConfig
from waylore.dates import Moment, find_timezone, to_datetime
from waylore.errors import ArgumentError, NotFound
from waylore.lengths import MAX_PATH, MAX_STATEMENT, MAX_TEXT, MAX_TITLE
from waylore.protocols import Embedder, Extractor, Observer, Reranker
from waylore.recipes import Recipe, TurnShare, choose_recipe
from waylore.retrieval.context.block import LAYOUTS, Layout
from waylore.types.identity import is_id
from waylore.types.knowledge import SOURCES, Fact, Metadata, NewFact, Scalar, Source
from waylore.types.search import NO_FILTER, Filter, Hit

Where: TypeAlias = Filter | Mapping[str, Any] | None
FactLike: TypeAlias = NewFact | Sequence[Any] | Mapping[str, Any]
Strings: TypeAlias = str | Iterable[str] | None
T = TypeVar("T")
Choice = TypeVar("Choice", bound=str)

MAX_TOP_K = 10_000
MAX_LIMIT = 1_000_000
MAX_GRAPH_HOPS = 6
MAX_NAME = 200  # characters of a collection's name
MAX_INT = 2**63 - 1  # both engines can store these numbers
NOT_IN_NAMES = ",*+"  # these characters join or select collections in an address of several


# -- texts, numbers, flags -----------------------------------------------------------------------------


def check_text(name: str, value: object, remedy: str = "", max_length: int = MAX_PATH) -> str:
    """Return a text; it must be a string without NUL and lone surrogates, not blank and not too long."""
    text = check_string(name, value, remedy, max_length)
    if not text.strip():
        raise ArgumentError(f"{name} must not be empty")
    return text


def check_string(name: str, value: object, remedy: str = "", max_length: int = MAX_PATH) -> str:
    """Return a string that both engines can store and that is not too long."""
    if not isinstance(value, str):
        raise ArgumentError(f"{name} must be a string, got {type(value).__name__}{'; ' if remedy else ''}{remedy}")
    if len(value) > max_length:
        raise ArgumentError(
            f"{name} must have at most {max_length:,} characters, got {len(value):,}; {remedy or 'shorten it'}"
        )
    if "\x00" in value:
        raise ArgumentError(f"{name} must not contain NUL characters; remove them")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ArgumentError(f"{name} must be valid Unicode; {error.reason} at {error.start}") from error
    return value


def check_optional(name: str, value: object, max_length: int = MAX_PATH) -> str:
    """Return a string; None stands for an empty one."""
    return check_string(name, "" if value is None else value, max_length=max_length)


def check_uri(name: str, value: object) -> str:
    """Return an address as a string; a path becomes one, None an empty one."""
    return check_optional(name, value.as_posix() if isinstance(value, Path) else value)


def check_count(name: str, value: object, maximum: int = MAX_LIMIT, minimum: int = 1) -> int:
    """Return a whole number from `minimum` to `maximum`."""
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
        raise ArgumentError(f"{name} must be a whole number from {minimum} to {maximum:,}, got {value!r:.60}")
    return value


def check_cosine(name: str, value: object) -> float | None:
    """Return a number from -1 to 1, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1.0 <= value <= 1.0:
        raise ArgumentError(f"{name} must be a number from -1 to 1 or None, got {value!r:.60}")
    return float(value)


def check_choice(name: str, value: object, choices: Sequence[Choice]) -> Choice:
    """Return the choice that a value equals."""
    for choice in choices:
        if value == choice:
            return choice
    raise ArgumentError(f"{name} must be one of {', '.join(choices)}, got {value!r:.60}")


def check_cursor(name: str, value: object) -> str:
    """Return the id at which a page ended; empty for the first page."""
    cursor = check_optional(name, value)
    if cursor and not is_id(cursor):
        raise ArgumentError(f"{name} must be the cursor of a page, got {cursor!r:.60}")
    return cursor


def check_names(name: object, other: object) -> tuple[str, str]:
    """Return the names of two entities."""
    remedy = "give the names of two entities"
    return check_text("name", name, remedy, MAX_TITLE), check_text("other", other, remedy, MAX_TITLE)


def check_type(name: str, value: object, kind: type[T]) -> T:
    """Return a value that has a type."""
    if not isinstance(value, kind):
        raise ArgumentError(f"{name} must be a {kind.__name__}, got {type(value).__name__}")
    return value


def check_age(older_than: object, *, is_expired: bool) -> timedelta | None:
    """Return an age of documents to forget; None stays None."""
    if older_than is None:
        return None
    age = check_type("older_than", older_than, timedelta)
    if age <= timedelta() or not is_expired:
        raise ArgumentError("older_than must be a positive duration, and needs expired=True")
    return age


def check_callable(name: str, value: T) -> T:
    """Return a function."""
    if not callable(value):
        raise ArgumentError(f"{name} must be a function, got {type(value).__name__}")
    return value


# -- lists of strings, metadata, filters ---------------------------------------------------------------


def to_strings(name: str, value: Strings) -> tuple[str, ...]:
    """Return several strings; a single string becomes a tuple of one, None an empty tuple."""
    if value is None:
        return ()
    if isinstance(value, str):
        value = (value,)
    several: object = value
    if not isinstance(several, Iterable) or isinstance(several, bytes | Mapping):
        raise ArgumentError(f"{name} must be a string or a list of strings, got {type(several).__name__}")
    return tuple(check_text(name, each, "give a string or a list of strings", MAX_TITLE) for each in several)


def to_timezone(name: str, value: str) -> tzinfo:
    """Return the timezone with a name."""
    return find_timezone(check_text(name, value, "give an IANA name such as Europe/Berlin", MAX_TITLE))


def to_names(value: Strings) -> tuple[str, ...]:
    """Return one name or several."""
    names = to_strings("names", value)
    if not names:
        raise ArgumentError("names must not be empty; give a name or a list of names")
    return names


def to_labels(value: Strings) -> frozenset[str]:
    """Return the labels of a document."""
    return frozenset(to_strings("labels", value))


def to_metadata(value: Mapping[str, Any] | None, name: str = "metadata") -> Metadata:
    """Return metadata of plain values: dates become ISO text, and a key whose value is None is left out."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ArgumentError(f"{name} must be a dict, got {type(value).__name__}")
    plain = {
        check_text(f"the keys of {name}", key, "use strings"): _to_plain(f"{name} {key!r:.60}", each)
        for key, each in value.items()
        if each is not None
    }
    if (length := sum(len(key) + len(str(each)) for key, each in plain.items())) > MAX_TEXT:
        raise ArgumentError(f"{name} must have at most {MAX_TEXT:,} characters in all, got {length:,}; add less of it")
    return plain


def _to_plain(name: str, value: object) -> Scalar | tuple[Scalar, ...]:
    if isinstance(value, list | tuple):
        return tuple(_to_scalar(name, each) for each in value)
    return _to_scalar(name, value)


def _to_scalar(name: str, value: object) -> Scalar:
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, str):
        return check_string(name, value, max_length=MAX_TEXT)
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) <= MAX_INT:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise ArgumentError(
        f"{name} must be a string, a finite number, a boolean, a date or a list of those, got {value!r:.60}"
    )


def to_filter(value: Where, name: str = "where") -> Filter:
    """Return a filter. A dict is the metadata that a document must have; None selects every document."""
    if value is None:
        return NO_FILTER
    if isinstance(value, Filter):
        return value
    if isinstance(value, Mapping):
        return Filter(metadata=to_metadata(value, name))
    raise ArgumentError(f"{name} must be a dict of metadata, a Filter or None, got {type(value).__name__}")


def add_scope(
    where: Filter,
    *,
    user: str | None = None,
    agent: str | None = None,
    session: str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
) -> Filter:
    """Return a filter with the scope and the period of a call. Parts that the call does not name stay unchanged."""
    return replace(
        where,
        user=check_optional("user", user, MAX_TITLE) or where.user,
        agent=check_optional("agent", agent, MAX_TITLE) or where.agent,
        session=check_optional("session", session, MAX_TITLE) or where.session,
        since=to_moment(since, "since") or where.since,
        until=to_moment(until, "until") or where.until,
    )


def check_selection(where: Filter) -> None:
    """Raise ArgumentError if a filter that selects documents to forget is empty."""
    if replace(where, labels=None, now=None) == NO_FILTER:
        raise ArgumentError(
            "documents must not be empty; name ids or addresses, or select by user, session, since, until, matching, "
            "expired or where"
        )


def to_moment(value: Moment | None, name: str = "as_of") -> datetime | None:
    """Return a time as an aware datetime; None stays None."""
    return None if value is None else to_datetime(value, name)


def check_view(
    since: Moment | None, until: Moment | None, limit: object
) -> tuple[datetime | None, datetime | None, int]:
    """Return the time and the number of items of a view."""
    first, last = to_moment(since, "since"), to_moment(until, "until")
    if first and last and first > last:
        raise ArgumentError(f"since must not be after until, got {first:%Y-%m-%d} and {last:%Y-%m-%d}")
    return first, last, check_count("limit", limit)


def to_passage(item: object) -> tuple[str, str]:
    """Return the id of the passage of a hit, a fact or an assertion, and the user of its document if that is known."""
    from waylore.types.views import Assertion  # noqa: PLC0415 (a search starts without it)

    if isinstance(item, Hit | Assertion):
        return item.passage.id, item.document.user
    if isinstance(item, Fact):
        return item.passage_id, ""
    return check_text("item", item, "give a hit, a fact, an assertion or the id of a passage"), ""


# -- facts ---------------------------------------------------------------------------------------------


def check_source(value: object) -> Source:
    """Return one of the four sources."""
    return check_choice("source", value, SOURCES)


def to_facts(value: Iterable[FactLike], source: Source) -> list[NewFact]:
    """Return facts; each may be a NewFact, a dict with its fields, or a subject, predicate and object."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise ArgumentError(f"facts must be a list of facts, such as [('Ann', 'likes', 'tea')], got {value!r:.60}")
    facts = list(value)
    if facts and all(isinstance(each, str) for each in facts):
        raise ArgumentError("facts must be a list of facts; put the one fact into a list: [('Ann', 'likes', 'tea')]")
    return [_to_fact(number, each, source) for number, each in enumerate(facts)]


def _to_fact(number: int, value: FactLike, source: Source) -> NewFact:
    try:
        if isinstance(value, NewFact):
            return _check_lengths(value)
        if isinstance(value, Mapping):
            return _check_lengths(NewFact(**{"source": source, **value}))
        if _is_triple(value):
            subject, predicate, object_ = value
            return _check_lengths(NewFact(subject, predicate, object_, source=source))
    except (ArgumentError, TypeError) as error:
        raise ArgumentError(f"facts[{number}]: {error}") from error
    raise ArgumentError(
        f"facts[{number}] must be a NewFact, a dict with subject, predicate and object, or these three, "
        f"got {value!r:.60}"
    )


def _check_lengths(fact: NewFact) -> NewFact:
    for name in ("subject", "predicate", "object", "subject_type", "object_type"):
        check_string(name, getattr(fact, name), max_length=MAX_TITLE)
    check_string("statement", fact.statement, max_length=MAX_STATEMENT)
    return fact


def _is_triple(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes) and len(value) == 3


# -- documents and paths -------------------------------------------------------------------------------


def to_documents(values: Sequence[object]) -> tuple[str, ...]:
    """Return ids and addresses of documents, given one by one or as a list."""
    flat: list[object] = []
    for value in values:
        is_several = isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)
        flat.extend(value if is_several else [value])  # type: ignore[arg-type]  # it is iterable
    if not flat:
        raise ArgumentError("documents must not be empty; name the ids or addresses of documents")
    return tuple(check_text("documents", check_uri("documents", each), "give ids or addresses") for each in flat)


def to_paths(value: object) -> tuple[Path, ...]:
    """Return one path or several."""
    several = value if isinstance(value, list | tuple | set | frozenset) else [value]
    return tuple(to_path("path", each) for each in several)


def to_path(name: str, value: object) -> Path:
    """Return a path that is not empty."""
    if isinstance(value, str) and value.strip():
        value = Path(check_string(name, value))
    if isinstance(value, Path) and len(str(value)) <= MAX_PATH:
        return value
    raise ArgumentError(f"{name} must be the path of a file or folder, got {value!r:.60}")


def check_exist(paths: Iterable[Path]) -> list[Path]:
    """Return paths of files and folders that exist."""
    found = list(paths)
    for path in found:
        if not path.exists():
            raise NotFound(f"no file or folder {path}; check the path")
    return found


# -- how to open and search ----------------------------------------------------------------------------


def check_url(value: object) -> str:
    """Return the address of a store. `~/` at the beginning of a file name is the home folder."""
    if isinstance(value, Path) or (isinstance(value, str) and value.startswith("~/")):
        return check_string("url", str(Path(value).expanduser()))
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_PATH:
        raise ArgumentError(f"url must be a file name or an address such as postgresql://…, got {value!r:.60}")
    return check_string("url", value)


def check_collection(value: object, *, is_cells: bool = False) -> str:
    """Return the name of a collection; over cells it may name several."""
    name = check_text("collection", value, "name a collection, such as default")
    if len(name) > MAX_NAME and not is_cells:
        raise ArgumentError(f"collection must have at most {MAX_NAME} characters, got {len(name)}")
    if not name.isprintable() or (not is_cells and any(each in name for each in NOT_IN_NAMES)):
        raise ArgumentError(f"collection must not contain control characters or any of {NOT_IN_NAMES}, got {name!r}")
    return name


def check_embedder(value: Embedder | None) -> Embedder | None:
    """Return an embedder, or None."""
    if value is None or _has_methods(value, "embed_passages", "embed_query"):
        return value
    raise ArgumentError(f"embedder must be an Embedder, for example FastEmbedder(), got {value!r:.60}")


def check_extractor(value: Extractor | str | None, rules: Extractor) -> Extractor | None:
    """Return an extractor; the names are "rules" and "none"."""
    if value is None or value == "none":
        return None
    if value == "rules":
        return rules
    if not isinstance(value, str) and _has_methods(value, "extract"):
        return value
    raise ArgumentError(f'extractor must be an Extractor, "rules", "none" or None, got {value!r:.60}')


def check_reranker(value: Reranker | None) -> Reranker | None:
    """Return a reranker, or None."""
    if value is None or _has_methods(value, "rerank"):
        return value
    raise ArgumentError(f"reranker must have a method rerank(query, texts), got {value!r:.60}")


def choose_reranker(rerank: bool | None, given: Reranker | None, default: Reranker | None) -> Reranker | None:
    """Return the reranker of a call, else that of the memory; None if `rerank` is false."""
    chosen = check_reranker(given) or default
    if rerank is None:
        return chosen
    if check_type("rerank", rerank, bool) and chosen is None:
        raise ArgumentError("rerank: there is no reranker; set search.reranker in waylore.toml (in Python: reranker=…)")
    return chosen if rerank else None


def check_observer(value: Observer | None) -> Observer | None:
    """Return an observer, or None."""
    if value is None or _has_methods(value, "observe"):
        return value
    raise ArgumentError(f"observer must have a method observe(verb), got {value!r:.60}")


def to_cache(value: CacheConfig | float | None) -> CacheConfig:
    """Return the settings of the answer cache; a number is its seconds, None turns it off."""
    if value is None:
        return CacheConfig(size=0)
    if isinstance(value, CacheConfig):
        return value
    seconds: object = value
    if isinstance(seconds, int | float) and not isinstance(seconds, bool) and seconds >= 0:
        return CacheConfig(seconds=float(seconds))
    raise ArgumentError(f"cache must be a CacheConfig, a number of seconds or None, got {value!r:.60}")


def to_recipe(method: str | Recipe, query: str, *find_turns: Callable[[], TurnShare]) -> tuple[Recipe, str]:
    """Return the recipe of a search and the reason for its choice, if the method chooses.

    `find_turns` returns how many of the passages that the caller sees are turns of conversations.
    """
    if isinstance(method, Recipe):
        return method, ""
    return choose_recipe(check_text("method", method, "name a method, or give a Recipe"), query, *find_turns)


def check_layout(value: object) -> Layout:
    """Return the layout of a context."""
    return check_choice("layout", value, LAYOUTS)


def _has_methods(value: object, *names: str) -> bool:
    return not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in names)

"""Run stages that read a store, and send independent requests together.

A stage is a generator. It yields a list of read requests, is sent their results, and returns its own result. It
holds no store, so the same stage runs on any engine.

`run_together` runs several stages in parallel: the requests that they yield at the same time go to the store in
one call, which on a server is one round trip. `run_stage` runs a stage on a store. If a request fails, its
error is raised in the stage that yielded it and in no other.
"""

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar, overload

from waylore.deadline import check_deadline
from waylore.errors import DamagedStore, DeadlineExceeded, StoreUnavailable, WayloreError
from waylore.store.protocol import Store
from waylore.store.requests import ReadRequest, make_request
from waylore.types.columns import Groups, TurnColumns

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
Q = TypeVar("Q")

RESULT_KINDS = {
    "dense": "passages",
    "dense_many": "passages",
    "lexical": "passages",
    "cosines": "passages",
    "word_scores": "passages",
    "turns": "passages",
    "passages": "passages",
    "find_passages": "passages",
    "nearest_entities": "entities",
    "entities_by_names": "entities",
    "find_entities_by_key": "entities",
    "find_similar_entities": "entities",
    "entities": "entities",
    "list_entities": "entities",
    "facts_of_entities": "facts",
    "assertions_of_entities": "facts",
    "facts_of_passages": "facts",
    "pairs_of_entities": "facts",
    "facts": "facts",
    "passages_of_entities": "mentions",
    "nearby": "mentions",
    "entities_of_passages": "mentions",
}  # documents are not counted: one comes with each passage


Reads: TypeAlias = Generator[Sequence[ReadRequest[Any]], Sequence[Any], T]
Fetch: TypeAlias = Callable[[Sequence[ReadRequest[Any]]], Sequence[Any]]


def read(verb: Callable[Concatenate[Any, P], T], *arguments: P.args, **options: P.kwargs) -> Reads[T]:
    """Run one request as a stage."""
    [answer] = yield [make_request(verb, *arguments, **options)]
    if isinstance(answer, WayloreError):
        raise answer
    result: T = answer
    return result


def read_nothing() -> Reads[None]:
    """Run no request, as a stage."""
    yield from ()


@overload
def read_together(a: Reads[A], b: Reads[B], /) -> Reads[tuple[A, B]]: ...
@overload
def read_together(a: Reads[A], b: Reads[B], c: Reads[C], /) -> Reads[tuple[A, B, C]]: ...
@overload
def read_together(a: Reads[A], b: Reads[B], c: Reads[C], d: Reads[D], /) -> Reads[tuple[A, B, C, D]]: ...
@overload
def read_together(
    a: Reads[A], b: Reads[B], c: Reads[C], d: Reads[D], e: Reads[E], /
) -> Reads[tuple[A, B, C, D, E]]: ...
def read_together(*stages: Reads[Any]) -> Reads[tuple[Any, ...]]:
    """Combine independent stages into one that returns all results."""
    return tuple((yield from run_together(stages)))


def run_stage(store: Store, stage: Reads[T], rows: Counter[str] | None = None) -> T:
    """Run a stage on a store and return its result. `rows` counts the rows that the store returned."""
    return drive(
        stage, count_rows(lambda requests: _fetch_answers(store, requests), Counter() if rows is None else rows)
    )


def count_rows(fetch: Fetch, rows: Counter[str]) -> Fetch:
    """Wrap a fetch function so that `rows` counts its results by kind: entities, facts, mentions, passages."""

    def fetch_and_count(requests: Sequence[ReadRequest[Any]]) -> Sequence[Any]:
        answers = fetch(requests)
        for request, answer in zip(requests, answers, strict=True):
            if request.verb in RESULT_KINDS:
                rows[RESULT_KINDS[request.verb]] += count_items(answer)
        return answers

    return fetch_and_count


def count_items(answer: Any) -> int:
    """Count the items of a ranking, of a mapping's values, or of the first mapping of a pair (`nearby`)."""
    if isinstance(answer, Groups | TurnColumns):
        return answer.size
    if isinstance(answer, Mapping):
        return sum(len(value) if isinstance(value, tuple) else 1 for value in answer.values())
    if isinstance(answer, WayloreError):
        return 0
    if isinstance(answer, list):
        return sum(map(len, answer))
    return count_items(answer[0]) if answer and isinstance(answer[0], Mapping) else len(answer)


def _fetch_answers(store: Store, requests: Sequence[ReadRequest[Any]]) -> Sequence[Any]:
    """Return the result of each request, or the error that it raised."""
    try:
        return store.read_many(requests) if len(requests) > 1 else [run_request(store, requests[0])]
    except StoreUnavailable as error:
        return [error for _ in requests]
    except (DeadlineExceeded, DamagedStore):
        raise
    except WayloreError:
        return [_run_or_return_error(store, request) for request in requests]


def run_request(store: Store, request: ReadRequest[T]) -> T:
    """Run one request on a store."""
    answer: T = getattr(store, request.verb)(*request.arguments, **request.options)
    return answer


def _run_or_return_error(store: Store, request: ReadRequest[T]) -> T | WayloreError:
    try:
        return run_request(store, request)
    except WayloreError as error:
        return error


# -- generators that yield requests --------------------------------------------------------------------


def run_together(
    generators: Sequence[Generator[Sequence[Q], Sequence[Any], Any]],
) -> Generator[Sequence[Q], Sequence[Any], list[Any]]:
    """Combine generators into one that yields the requests of all of them until the last one returns."""
    results: list[Any] = [None] * len(generators)
    pending: dict[int, Sequence[Q]] = {}

    def advance(number: int, answers: Sequence[Any] | None) -> None:
        try:
            pending[number] = generators[number].send(answers)  # type: ignore[arg-type]  # None starts the generator
        except StopIteration as done:
            results[number] = done.value

    for number in range(len(generators)):
        advance(number, None)
    while pending:
        current, pending = pending, {}
        answers = iter((yield [request for requests in current.values() for request in requests]))
        for number, requests in current.items():
            advance(number, [next(answers) for _ in requests])
    return results


def drive(steps: Generator[Sequence[Q], Sequence[Any], T], fetch: Callable[[Sequence[Q]], Sequence[Any]]) -> T:
    """Run a generator, fetch the requests that it yields with `fetch`, and return its result.

    An empty list of requests is answered without a call of `fetch`. The deadline is checked before each step.
    """
    answers: Sequence[Any] | None = None
    while True:
        check_deadline()
        try:
            pending = steps.send(answers)  # type: ignore[arg-type]  # None starts the generator
        except StopIteration as done:
            result: T = done.value
            return result
        answers = fetch(pending) if pending else ()

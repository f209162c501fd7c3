"""What is asked of a store, as data: so that whatever does not wait for an answer can be asked at once.

A stage that reads is a generator. It yields what it asks, is sent the answers, and returns what it makes of
them; it holds no store. `together` lets several go on side by side: what they ask at a time goes to the store
in one call, which on a server is one round trip. `answered` runs a stage on a store. An ask that fails raises
where it was made, and nowhere else.
"""

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar, overload

from waylore.errors import StoreUnavailable, WayloreError
from waylore.store.protocol import Store
from waylore.store.requests import Ask, ask

P = ParamSpec("P")
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
Q = TypeVar("Q")

GIVES = {
    "dense": "passages",
    "lexical": "passages",
    "cosines": "passages",
    "passages": "passages",
    "nearest_entities": "entities",
    "entities_by_names": "entities",
    "keyed": "entities",
    "alike": "entities",
    "entities": "entities",
    "facts_of_entities": "facts",
    "facts_of_passages": "facts",
    "facts": "facts",
    "passages_of_entities": "mentions",
    "nearby": "mentions",
    "entities_of_passages": "mentions",
}  # what a verb answers with; documents come one with each passage


Reads: TypeAlias = Generator[Sequence[Ask[Any]], Sequence[Any], T]
Fetch: TypeAlias = Callable[[Sequence[Ask[Any]]], Sequence[Any]]


def read(verb: Callable[Concatenate[Any, P], T], *arguments: P.args, **options: P.kwargs) -> Reads[T]:
    """The stage that asks one thing."""
    [answer] = yield [ask(verb, *arguments, **options)]
    if isinstance(answer, WayloreError):
        raise answer
    told: T = answer
    return told


def nothing() -> Reads[None]:
    """The stage that asks nothing."""
    yield from ()


@overload
def together(a: Reads[A], b: Reads[B], /) -> Reads[tuple[A, B]]: ...
@overload
def together(a: Reads[A], b: Reads[B], c: Reads[C], /) -> Reads[tuple[A, B, C]]: ...
@overload
def together(a: Reads[A], b: Reads[B], c: Reads[C], d: Reads[D], /) -> Reads[tuple[A, B, C, D]]: ...
def together(*stages: Reads[Any]) -> Reads[tuple[Any, ...]]:
    """Stages that do not depend on each other, as one."""
    return tuple((yield from side_by_side(stages)))


def answered(store: Store, stage: Reads[T], rows: Counter[str] | None = None) -> T:
    """What a stage makes of what this store knows; `rows` counts what it was given."""
    return driven(stage, counted(lambda asks: _answers(store, asks), Counter() if rows is None else rows))


def counted(fetch: Fetch, rows: Counter[str]) -> Fetch:
    """The same answers; `rows` counts them by kind: `entities`, `facts`, `mentions`, `passages`."""

    def fetched(asks: Sequence[Ask[Any]]) -> Sequence[Any]:
        given = fetch(asks)
        for each, answer in zip(asks, given, strict=True):
            if each.verb in GIVES:
                rows[GIVES[each.verb]] += _size(answer)
        return given

    return fetched


def _size(answer: Any) -> int:
    """How many things an answer holds: a ranking's, those of a mapping, of the first of two (`nearby`)."""
    if isinstance(answer, Mapping):
        return sum(len(found) if isinstance(found, tuple) else 1 for found in answer.values())
    if isinstance(answer, WayloreError):
        return 0
    return _size(answer[0]) if answer and isinstance(answer[0], Mapping) else len(answer)


def _answers(store: Store, asks: Sequence[Ask[Any]]) -> Sequence[Any]:
    """An answer to each, or the error that it raised."""
    try:
        return store.together(asks) if len(asks) > 1 else [run_request(store, asks[0])]
    except StoreUnavailable as error:
        return [error for _ in asks]
    except WayloreError:
        return [_outcome(store, each) for each in asks]


def run_request(store: Store, asked: Ask[T]) -> T:
    """Run one request on a store."""
    answer: T = getattr(store, asked.verb)(*asked.arguments, **asked.options)
    return answer


def _outcome(store: Store, asked: Ask[T]) -> T | WayloreError:
    try:
        return run_request(store, asked)
    except WayloreError as error:
        return error


# -- generators that want something, and are given it --------------------------------------------------


def side_by_side(
    several: Sequence[Generator[Sequence[Q], Sequence[Any], Any]],
) -> Generator[Sequence[Q], Sequence[Any], list[Any]]:
    """Several as one that wants what they want, for as long as one of them wants something."""
    results: list[Any] = [None] * len(several)
    wanted: dict[int, Sequence[Q]] = {}

    def go_on(number: int, given: Sequence[Any] | None) -> None:
        try:
            wanted[number] = several[number].send(given)  # type: ignore[arg-type]  # None begins
        except StopIteration as done:
            results[number] = done.value

    for number in range(len(several)):
        go_on(number, None)
    while wanted:
        now, wanted = wanted, {}
        given = iter((yield [each for those in now.values() for each in those]))
        for number, those in now.items():
            go_on(number, [next(given) for _ in those])
    return results


def driven(steps: Generator[Sequence[Q], Sequence[Any], T], fetch: Callable[[Sequence[Q]], Sequence[Any]]) -> T:
    """What a generator returns when it is given all that it wants; who wants nothing is given it at once."""
    given: Sequence[Any] | None = None
    while True:
        try:
            wanted = steps.send(given)  # type: ignore[arg-type]  # None begins
        except StopIteration as done:
            result: T = done.value
            return result
        given = fetch(wanted) if wanted else ()

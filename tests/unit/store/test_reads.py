"""Counting of rows by kind, for results of every shape."""

from collections import Counter

from waylore.errors import StoreError
from waylore.store.protocol import Store
from waylore.store.reads import RESULT_KINDS, Reads, count_rows, drive
from waylore.store.requests import make_request
from waylore.types.knowledge import Fact, Mention
from waylore.types.search import Scored


def stage() -> Reads[int]:
    first = yield [make_request(Store.lexical, "who?", top_k=2), make_request(Store.statistics)]
    second = yield [
        make_request(Store.facts_of_entities, ["e"], per_entity=9),
        make_request(Store.cosines, None, ["p"]),  # type: ignore[arg-type]
        make_request(Store.nearby, None, ["e"], per_entity=9),  # type: ignore[arg-type]
        make_request(Store.dense, None, top_k=2),  # type: ignore[arg-type]
    ]
    return len(first) + len(second)


def test_count_rows_counts_results_by_kind() -> None:
    fact, mention = Fact("f", "e", "Mara", "owns", "it"), Mention("e", "p")
    answers = iter(
        [
            [(Scored("p", 1.0), Scored("q", 0.5)), object()],
            [
                {"e": (fact, fact), "o": (fact,)},
                {"p": 0.3},
                ({"e": (mention, mention)}, {"p": 0.3, "q": 0.1}),
                StoreError("gone"),
            ],
        ]
    )
    rows: Counter[str] = Counter()
    assert drive(stage(), count_rows(lambda _: next(answers), rows)) == 6
    assert rows == {"passages": 3, "facts": 3, "mentions": 2}


def test_result_kinds_are_methods_of_store() -> None:
    assert all(hasattr(Store, verb) for verb in RESULT_KINDS)

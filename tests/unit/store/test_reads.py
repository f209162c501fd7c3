"""What a stage is given is counted by kind, however it is shaped."""

from collections import Counter

from waylore.errors import StoreError
from waylore.store.protocol import Store
from waylore.store.reads import GIVES, Reads, counted, driven
from waylore.store.requests import ask
from waylore.types.knowledge import Fact, Mention
from waylore.types.search import Scored


def stage() -> Reads[int]:
    first = yield [ask(Store.lexical, "who?", top_k=2), ask(Store.statistics)]
    second = yield [
        ask(Store.facts_of_entities, ["e"], per_entity=9),
        ask(Store.cosines, None, ["p"]),  # type: ignore[arg-type]
        ask(Store.nearby, None, ["e"], per_entity=9),  # type: ignore[arg-type]
        ask(Store.dense, None, top_k=2),  # type: ignore[arg-type]
    ]
    return len(first) + len(second)


def test_rows_are_counted_by_kind() -> None:
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
    assert driven(stage(), counted(lambda _: next(answers), rows)) == 6
    assert rows == {"passages": 3, "facts": 3, "mentions": 2}


def test_what_is_counted_are_verbs_of_a_store() -> None:
    assert all(hasattr(Store, verb) for verb in GIVES)

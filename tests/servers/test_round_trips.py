"""How often a search waits for a server, counted on the wire: what a distant server costs."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from tools.faults import Proxy, proxy
from tools.postgres import Server

from databases import fresh_name
from waylore.recipes import RECIPES, Recipe
from waylore.retrieval.search import search
from waylore.store.protocol import Store
from waylore.store.urls import open_store
from waylore.testing.suite import MODEL, PUBLIC, WORLD, page, question
from waylore.types.knowledge import EPOCH, Claim
from waylore.types.search import Filter, Query

ASKED = "Where is the mother of Lothair II buried?"
WARM = 12  # searches after which every statement is prepared, and every filter known


@pytest.fixture(scope="module")
def between(postgres: Server) -> Iterator[Proxy]:
    with proxy(postgres.port) as between:
        yield between


@pytest.fixture(scope="module")
def store(postgres: Server, between: Proxy) -> Iterator[Store]:
    with closing(open_store(between.url(postgres.url), fresh_name("trips"))) as store:
        store.write(WORLD, model=MODEL)
        store.write([page("Lothar 2 was a king.", Claim("Lothar 2", "same_as", "Lothair II"))], model=MODEL)
        yield store


def trips(store: Store, between: Proxy, asked: str, recipe: Recipe, where: Filter) -> int:
    """Of one search, after others like it."""
    query = Query(asked, question(asked), where)
    found = search(store, None, query, recipe, now=EPOCH)
    assert (found.skipped == "") == bool(recipe.graph)
    assert found.hits
    return asked_for(between, lambda: search(store, None, query, recipe, now=EPOCH))


def asked_for(between: Proxy, ask: Callable[[], object]) -> int:
    """How often a client asks for an answer, once every statement is prepared."""
    for _ in range(WARM):
        ask()
    before = between.turns
    ask()
    return between.turns - before


@pytest.mark.parametrize("where", [Filter(), PUBLIC, Filter(metadata={"lang": "en"})])
def test_a_hybrid_search_asks_twice(store: Store, between: Proxy, where: Filter) -> None:
    assert trips(store, between, "king of Lotharingia", RECIPES["hybrid"], where) == 2


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_a_chain_search_asks_four_times_and_once_a_hop(store: Store, between: Proxy, hops: int) -> None:
    recipe = RECIPES["chain"]
    recipe = replace(recipe, walk=replace(recipe.walk, max_hops=hops))
    assert trips(store, between, "Who was the mother of Ermengarde of Tours?", recipe, Filter()) <= 4 + hops


def test_another_name_of_what_is_named_costs_one_more(store: Store, between: Proxy) -> None:
    assert trips(store, between, ASKED, RECIPES["chain"], Filter()) == 6


def test_one_verb_asks_once(store: Store, between: Proxy) -> None:
    assert asked_for(between, lambda: store.lexical("king", top_k=5)) == 1

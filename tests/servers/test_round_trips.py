"""The number of round trips of a search, counted on the wire, because each is expensive on a distant server."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from tools.faults import Proxy, start_proxy
from tools.postgres.server import Server

from databases import make_name
from waylore.config import HybridConfig
from waylore.recipes import RECIPES, Recipe
from waylore.retrieval.search import search
from waylore.store.protocol import Store
from waylore.store.urls import open_store
from waylore.testing.world import MODEL, PUBLIC, WORLD, page, question
from waylore.types.author import OWNER
from waylore.types.knowledge import EPOCH, NewFact
from waylore.types.search import Filter, Query

QUESTION = "Where is the mother of Lothair II buried?"
WARM = 12  # searches after which every statement is prepared and every scope is cached


@pytest.fixture(scope="module")
def proxy(postgres: Server) -> Iterator[Proxy]:
    with start_proxy(postgres.port) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def store(postgres: Server, proxy: Proxy) -> Iterator[Store]:
    with closing(open_store(proxy.build_url(postgres.url), make_name("count_search_trips"))) as store:
        store.write(WORLD, author=OWNER, model=MODEL)
        store.write(
            [page("Lothar 2 was a king.", NewFact("Lothar 2", "same_as", "Lothair II"))], author=OWNER, model=MODEL
        )
        yield store


def count_search_trips(store: Store, proxy: Proxy, asked: str, recipe: Recipe, where: Filter) -> int:
    """Count the round trips of one search, after others like it."""
    query = Query(asked, question(asked), where)
    found = search(store, None, query, recipe, now=EPOCH)
    assert (found.skip_reason == "") == bool(recipe.graph)
    assert found.hits
    return count_trips(proxy, lambda: search(store, None, query, recipe, now=EPOCH))


def count_trips(proxy: Proxy, ask: Callable[[], object]) -> int:
    """Count the round trips of a call, after every statement is prepared."""
    for _ in range(WARM):
        ask()
    before = proxy.round_trips
    ask()
    return proxy.round_trips - before


@pytest.mark.parametrize("where", [Filter(), PUBLIC, Filter(metadata={"lang": "en"})])
def test_weighted_hybrid_search_takes_two_round_trips(store: Store, proxy: Proxy, where: Filter) -> None:
    weighted = replace(RECIPES["hybrid"], hybrid=HybridConfig("weighted"))
    assert count_search_trips(store, proxy, "king of Lotharingia", weighted, where) == 2


@pytest.mark.parametrize("candidates", [2, 80])
def test_hybrid_search_takes_one_more_round_trip_for_missing_scores(
    store: Store, proxy: Proxy, candidates: int
) -> None:
    recipe = replace(RECIPES["hybrid"], hybrid=HybridConfig(candidates=candidates))
    assert count_search_trips(store, proxy, "king of Lotharingia", recipe, Filter()) == 3
    everywhere = "Lothair was king in Tours, is buried at Erstein, and rules"
    assert count_search_trips(store, proxy, everywhere, RECIPES["hybrid"], PUBLIC) == 2


@pytest.mark.parametrize("hops", [1, 2, 3])
def test_chain_search_takes_four_round_trips_and_one_per_hop(store: Store, proxy: Proxy, hops: int) -> None:
    recipe = RECIPES["chain"]
    recipe = replace(recipe, walk=replace(recipe.walk, max_hops=hops))
    assert count_search_trips(store, proxy, "Who was the mother of Ermengarde of Tours?", recipe, Filter()) <= 4 + hops


def test_same_as_entity_takes_one_more_round_trip(store: Store, proxy: Proxy) -> None:
    assert count_search_trips(store, proxy, QUESTION, RECIPES["chain"], Filter()) == 6


def test_one_read_takes_one_round_trip(store: Store, proxy: Proxy) -> None:
    assert count_trips(proxy, lambda: store.lexical("king", top_k=5)) == 1

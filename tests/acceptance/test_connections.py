"""A hundred pairs of the golden worlds with a known shortest path: it is found, equally on both engines (issue 30)."""

import random
from itertools import combinations
from pathlib import Path

import pytest

from acceptance.test_golden import WORLDS, fill_memory
from databases import create_database
from retrieval.walking import SeenGraph, measure_distance, see_graph
from waylore import Waylore
from waylore.indexing import exports
from waylore.types.search import NO_FILTER

PAIRS_OF_WORLD = 25
MAX_HOPS = 4


def choose_pairs(seen: SeenGraph, world: str) -> dict[tuple[str, str], int | None]:
    """Return pairs of entities with their distance: half of them within the bound, others at random."""
    every = list(combinations(sorted(seen.entities), 2))
    random.Random(world).shuffle(every)
    near = [pair for pair in every if (measure_distance(seen, *pair) or MAX_HOPS + 1) <= MAX_HOPS]
    chosen = dict.fromkeys([*near[: PAIRS_OF_WORLD // 2], *every])
    return {pair: measure_distance(seen, *pair) for pair in list(chosen)[:PAIRS_OF_WORLD]}


@pytest.mark.parametrize("world", WORLDS)
def test_path_of_known_length_is_found_on_both_engines(world: str, tmp_path: Path) -> None:
    with fill_memory(tmp_path, None, world) as memory, Waylore.open(create_database()) as server:
        memory.export(tmp_path / "export.jsonl")
        server.import_(tmp_path / "export.jsonl")
        _, documents = exports.read_export(memory.export_lines())
        seen = see_graph(documents, NO_FILTER)
        pairs = choose_pairs(seen, world)
        assert len(pairs) == PAIRS_OF_WORLD
        for (one, other), distance in pairs.items():
            found = memory.connect(one, other, max_hops=MAX_HOPS)
            is_near = distance is not None and distance <= MAX_HOPS
            assert {path.hops for path in found.paths} == ({distance} if is_near else set())
            assert found.exhaustive or found.paths
            assert server.connect(one, other, max_hops=MAX_HOPS).to_dict() == found.to_dict()

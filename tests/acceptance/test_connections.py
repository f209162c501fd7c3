"""Pairs with a known shortest path, in the golden worlds and in real folders: it is found, equally on both engines."""

import random
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path

import pytest

from acceptance.test_golden import WORLDS, fill_memory
from databases import create_database
from requirements import find_folders
from retrieval.walking import SeenGraph, measure_distance, see_graph
from waylore import Waylore
from waylore.indexing import exports
from waylore.types.relations import Connection
from waylore.types.search import NO_FILTER

LARGE = ("community", "manual", "proposals", "runbooks")
FOLDERS = ["notes", *(pytest.param(name, marks=pytest.mark.full) for name in LARGE)]
PAIRS_OF_WORLD = PAIRS_OF_FOLDER = 25
MAX_HOPS = 4


def choose_pairs(seen: SeenGraph, world: str) -> dict[tuple[str, str], int | None]:
    """Return pairs of entities with their distance: half of them within the bound, others at random."""
    every = list(combinations(sorted(seen.entities), 2))
    random.Random(world).shuffle(every)
    near = [pair for pair in every if (measure_distance(seen, *pair) or MAX_HOPS + 1) <= MAX_HOPS]
    chosen = dict.fromkeys([*near[: PAIRS_OF_WORLD // 2], *every])
    return {pair: measure_distance(seen, *pair) for pair in list(chosen)[:PAIRS_OF_WORLD]}


def draw_pairs(seen: SeenGraph, folder: str) -> dict[tuple[str, str], int | None]:
    """Return pairs of a large graph with their distance, drawn at random from the entities that have neighbours."""
    connected = sorted(id_ for id_ in seen.entities if seen.neighbours[seen.get_thing(id_)])
    chance = random.Random(folder)
    pairs = [(one, other) for one, other in (chance.sample(connected, 2) for _ in range(PAIRS_OF_FOLDER))]
    return {pair: measure_distance(seen, *pair) for pair in pairs}


@pytest.mark.parametrize("world", WORLDS)
def test_path_of_known_length_is_found_on_both_engines(world: str, tmp_path: Path) -> None:
    with fill_memory(tmp_path, None, world) as memory:
        answers = check_pairs(memory, tmp_path, partial(choose_pairs, world=world))
    assert all(found.exhaustive or found.paths for found in answers)


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("folder", FOLDERS)
def test_path_of_known_length_is_found_in_a_real_folder(folder: str, tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "folder.waylore") as memory:
        memory.add_files(find_folders() / folder / "files")
        check_pairs(memory, tmp_path, partial(draw_pairs, folder=folder))


def check_pairs(
    memory: Waylore, folder: Path, choose: Callable[[SeenGraph], dict[tuple[str, str], int | None]]
) -> list[Connection]:
    """Check that a shortest path is found between the entities of each pair, if there is one; return the answers."""
    with Waylore.open(create_database()) as server:
        memory.export(folder / "export.jsonl")
        server.import_(folder / "export.jsonl")
        _, documents = exports.read_export(memory.export_lines())
        pairs, answers = choose(see_graph(documents, NO_FILTER)), list[Connection]()
        assert len(pairs) == PAIRS_OF_WORLD
        for (one, other), distance in pairs.items():
            found = memory.connect(one, other, max_hops=MAX_HOPS)
            is_near = distance is not None and distance <= MAX_HOPS
            assert {path.hops for path in found.paths} == ({distance} if is_near else set())
            answers.append(found)
            assert server.connect(one, other, max_hops=MAX_HOPS).to_dict() == found.to_dict()
    return answers

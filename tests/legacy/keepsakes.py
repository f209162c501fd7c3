"""The kept bytes of the version before the renaming, and the answers that it gave.

`kept/` holds a store with a registry, a catalogue of cells, an export, and the dump of a PostgreSQL database
with a store, a registry, a catalogue and one waiting job. Commit c59522a made them from the world `family` of
the golden tests. `answers.json` has its answers, and `chain_weights.json` has its weights. The answers to callers
who do not see all documents are the ones that it gave after the hidden documents were forgotten, because it counted
words and mentions of hidden ones too. Searches record no use, because use changes later answers.
"""

import json
import lzma
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from waylore.config import Fusion
from waylore.engine.waylore import Waylore
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.recipes import RECIPES, Recipe
from waylore.retrieval import scale
from waylore.types.search import CosineScale, Filter

KEPT = Path(__file__).parent / "kept"
COLLECTION = "family"
ANSWERS: dict[str, Any] = json.loads((KEPT / "answers.json").read_text("utf-8"))
CHAIN_WEIGHTS: dict[str, Any] = json.loads((KEPT / "chain_weights.json").read_text("utf-8"))
NOW = datetime(2026, 3, 2, tzinfo=UTC)


def read_kept(name: str) -> bytes:
    """Return the bytes of a kept file."""
    return lzma.decompress((KEPT / f"{name}.xz").read_bytes())


MAX_ROUNDING = 0.005  # of a score: vectors had 16 bits per dimension and have eight now


def open_old(url: str) -> Waylore:
    """Open the kept collection, wherever it was restored to."""
    embedder = HashingEmbedder(32, quiet=True)
    return Waylore.open(url, collection=COLLECTION, embedder=embedder, clock=lambda: NOW)


def get_old_recipe(method: str) -> Recipe:
    """Return the recipe with the fusion of the old version, which is a setting now, and with its weights."""
    recipe = RECIPES[method]
    fusion: Fusion = "rrf" if recipe.hybrid.fusion == "rrf" else "weighted"
    first, second = (tuple(CHAIN_WEIGHTS[table].items()) for table in ("first", "second"))
    chain = replace(recipe.chain, first=first, second=second)
    return replace(recipe, hybrid=replace(recipe.hybrid, fusion=fusion), chain=chain)


def check_answers(url: str, engine: str) -> None:
    """Assert that a store gives the answers that the old version gave."""
    kept = ANSWERS[engine]
    with pytest.MonkeyPatch.context() as patch, open_old(url) as memory:
        patch.setitem(scale._measured, HashingEmbedder(32, quiet=True).name, CosineScale())  # it knew no scales
        assert memory.stats().documents == kept["documents"]
        assert [str(fact) for fact in memory.facts("Edda Lindqvar")] == kept["facts"]
        for answer in kept["answers"]:
            labels = answer["labels"]
            where = Filter(labels=None if labels is None else frozenset(labels))
            found = memory.search(
                answer["question"], method=get_old_recipe(answer["method"]), where=where, record_use=False
            )
            scores = {hit.passage.id: hit.score for hit in found.hits[:5]}
            assert scores.keys() == answer["hits"].keys()
            if answer["method"] != "chain":  # its scores have other features now
                assert scores == pytest.approx(answer["hits"], abs=MAX_ROUNDING)

"""The unit of an embedder: the difference of two cosines that counts as the whole weight of vector search.

Models spread their cosines differently: two random texts differ by a few hundredths with one, by tenths with another.
The unit depends on the model and never on a collection, so that hidden documents cannot change a score. For
models in the table it was measured on training questions. For any other it is computed from the cosines of 64
sentences that the package ships.
"""

from functools import cache
from importlib.resources import files

import numpy as np

from waylore.protocols import Embedder
from waylore.types.search import CosineSpread

DEFAULT_UNIT = 0.30  # for unknown models: the unit of the default model
DEVIATIONS = 5.0  # deviations of the cosines of two sentences in a unit
UNITS = {"bge-small-en-v1.5": 0.30, "potion-base-8m": 1.25}  # by name, without the organisation
SPREADS = {"bge-small-en-v1.5": CosineSpread(0.384, 0.061), "potion-base-8m": CosineSpread(0.070, 0.091)}
WEIGHTS = {"f65d0f32": "potion-base-8m"}  # weights in a directory that may have any name, by their fingerprint

# Measured units by the name of the model, which identifies its vectors. They are cached in the process, because a store
# has no column for them yet.
_measured: dict[str, float] = {}
_measured_spreads: dict[str, CosineSpread] = {}


def find_unit(model: str) -> float | None:
    """Return the unit of a model by its name; None if it has to be measured."""
    return UNITS.get(_find_name(model), _measured.get(model))


def find_spread(model: str) -> CosineSpread | None:
    """Return how the cosines of a model are spread; None before `measure_unit` if it is not in the table."""
    return SPREADS.get(_find_name(model), _measured_spreads.get(model))


def _find_name(model: str) -> str:
    """Return the name of a model in the tables."""
    name, _, fingerprint = model.partition("@")
    return WEIGHTS.get(fingerprint, name.rpartition("/")[2].lower())


def measure_unit(embedder: Embedder) -> float:
    """Return the unit of an embedder from the cosines of the shipped sentences, and remember it for its name."""
    vectors = embedder.embed_passages(load_sentences()).astype(np.float64)
    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    cosines = (vectors / lengths) @ (vectors / lengths).T
    pairs = cosines[np.triu_indices(len(cosines), k=1)]
    deviation = float(pairs.std())
    unit = round(DEVIATIONS * deviation, 2) or DEFAULT_UNIT
    _measured_spreads[embedder.name] = CosineSpread(float(pairs.mean()), deviation or DEFAULT_UNIT / DEVIATIONS)
    return _measured.setdefault(embedder.name, unit)


@cache
def load_sentences() -> tuple[str, ...]:
    """Return the sentences that the package ships."""
    return tuple(files("waylore").joinpath("sentences.txt").read_text("utf-8").splitlines())

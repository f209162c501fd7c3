"""The scale of an embedder: how it spreads its cosines.

Two unrelated texts have a cosine of 0.4 with one model and of 0.1 with another. The scale depends on the model and
never on a collection, so that hidden documents cannot change a score. For models in the table, units were measured on
training questions. For any other model all numbers come from the cosines of 64 sentences that the package ships.

The weights of the graph search were fitted to bge-small. A line maps the cosines of another model to those of
bge-small: it leads from the cosine of two of the sentences, and of one and its tenth neighbour, to bge-small's.
"""

from functools import cache
from importlib.resources import files

import numpy as np

from waylore.protocols import Embedder
from waylore.types.search import CosineScale

DEFAULT_UNIT = CosineScale().unit  # for unknown models: the unit of the default model
DEVIATIONS = 5.0  # deviations of the cosines of two sentences in a unit
NEIGHBOUR = 10
LOW, HIGH = 0.423, 0.484  # cosines of two sentences, and of one and its tenth neighbour, with bge-small
SCALES = {
    "bge-small-en-v1.5": CosineScale(0.30, 0.384, 0.061),
    "potion-base-8m": CosineScale(1.25, 0.070, 0.091, 0.656, 0.377),
}  # by name, without the organisation
WEIGHTS = {"f65d0f32": "potion-base-8m"}  # weights in a directory that may have any name, by their fingerprint

# Measured scales by the name of the model, which identifies its vectors. They are cached in the process, because a
# store has no column for them.
_measured: dict[str, CosineScale] = {}


def get_scale(embedder: Embedder) -> CosineScale:
    """Return the scale of an embedder, which is measured if it is not known."""
    return find_scale(embedder.name) or measure_scale(embedder)


def find_scale(model: str) -> CosineScale | None:
    """Return the scale of a model by its name; None if it has to be measured."""
    name, _, fingerprint = model.partition("@")
    return SCALES.get(WEIGHTS.get(fingerprint, name.rpartition("/")[2].lower()), _measured.get(model))


def measure_scale(embedder: Embedder) -> CosineScale:
    """Return the scale of an embedder from the cosines of the shipped sentences, and remember it for its name."""
    vectors = embedder.embed_passages(load_sentences()).astype(np.float64)
    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    cosines = (vectors / lengths) @ (vectors / lengths).T
    pairs = cosines[np.triu_indices(len(cosines), k=1)]
    low, deviation = float(pairs.mean()), float(pairs.std()) or DEFAULT_UNIT / DEVIATIONS
    nearest_first = -np.sort(-cosines, axis=1)  # the first is the sentence itself
    rise = float(nearest_first[:, NEIGHBOUR].mean()) - low
    slope = (HIGH - LOW) / rise if rise > 1e-3 else 1.0
    unit = round(DEVIATIONS * deviation, 2) or DEFAULT_UNIT
    return _measured.setdefault(embedder.name, CosineScale(unit, low, deviation, slope, LOW - slope * low))


@cache
def load_sentences() -> tuple[str, ...]:
    """Return the sentences that the package ships."""
    return tuple(files("waylore").joinpath("sentences.txt").read_text("utf-8").splitlines())

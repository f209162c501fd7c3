"""Print where the passages that answer a question are lost: not a candidate, or ranked too low.

    python -m benchmarks.oracle --data SETS --sets musique --model WEIGHTS --vectors DIR --folder DIR

A perfect order of the candidates would reach their share at 5, because no question needs more than four passages. The
share of hybrid search at 80 is what its candidates could reach without the graph.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from waylore.evaluation.datasets import Dataset, EvaluationQuestion, limit_pages, read_dataset
from waylore.evaluation.index import add_embedder_options, create_embedder, open_indexed
from waylore.evaluation.run import make_filter, show_progress
from waylore.protocols import Embedder
from waylore.recipes import RECIPES, Recipe
from waylore.retrieval.scale import get_scale
from waylore.retrieval.search import search
from waylore.store.protocol import Store
from waylore.types.knowledge import EPOCH
from waylore.types.search import Query

METHODS = ("hybrid", "chain", "deep")
DEPTHS = (5, 10, 20)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a passage that a question needs, from 0, and the number of candidates; None if it is none."""

    place: int | None
    candidates: int


def find_places(
    store: Store, embedder: Embedder, question: EvaluationQuestion, recipe: Recipe, ids: Mapping[str, str]
) -> list[Place]:
    """Return the place of each gold passage of a question among all candidates."""
    query = Query(question.text, embedder.embed_query(question.text), make_filter(question), scale=get_scale(embedder))
    ranking = [each.id for each in search(store, embedder, query, recipe, now=EPOCH).ranking]
    places = {id_: place for place, id_ in enumerate(ranking)}
    return [Place(places.get(ids[uri]), len(ranking)) for uri in sorted(question.gold)]


def format_row(dataset: Dataset, method: str, places: Sequence[Place]) -> str:
    """Format the shares of gold passages as a line of a Markdown table."""

    def percent(low: int, high: int | None) -> str:
        count = sum(p.place is not None and low <= p.place and (high is None or p.place < high) for p in places)
        return f"{100 * count / len(places):.1f}"

    found = [percent(0, depth) for depth in DEPTHS]
    lost = f"{100 * sum(p.place is None for p in places) / len(places):.1f}"
    size = f"{sum(p.candidates for p in places) / len(places):.0f}"
    return f"| {' | '.join((dataset.name, method, size, *found, percent(0, None), lost, percent(5, 10), percent(10, None)))} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each set and method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of benchmark sets")
    parser.add_argument("--sets", nargs="+", required=True)
    parser.add_argument("--sample", type=int, help="number of questions of each set, evenly spread")
    parser.add_argument("--pages", type=int, help="number of pages: those of the questions, and others at random")
    add_embedder_options(parser)
    options = parser.parse_args(arguments)
    embedder = create_embedder(options)
    titles = [*(f"first {depth}" for depth in DEPTHS), "all candidates", "no candidate", "at 6 to 10", "below 10"]
    print(f"| set | method | candidates | {' | '.join(titles)} |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for name in options.sets:
        dataset = read_dataset(options.data / name, sample=options.sample)
        dataset = limit_pages(dataset, options.pages) if options.pages else dataset
        ids = {page.document.uri: page.passages[0].id for page in dataset.pages}
        with open_indexed(dataset, embedder, options.folder, options.store) as store:
            for method in METHODS:
                recipe, show = replace(RECIPES[method], top_k=20), show_progress(f"{name} {method}")
                places: list[Place] = []
                for done, question in enumerate(dataset.questions, start=1):
                    places += find_places(store, embedder, question, recipe, ids)
                    show(done, len(dataset.questions))
                print(format_row(dataset, method, places), flush=True)


if __name__ == "__main__":
    main()

"""Compare embedders on benchmark sets: R@5 of hybrid, chain and deep, all with the shipped weights.

    python -m benchmarks.embedders --data SETS --models .cache/models --embedders potion minilm
    python -m benchmarks.embedders --data SETS --models .cache/models --embedders bge-small nomic --sample 50 --pages 300

`tools/models.py` downloads the models. The multilingual encoder has its tokenizer inside the ONNX graph and needs
`pip install onnxruntime-extensions`; the product does not depend on it. With `--vectors` and `--folder` vectors and
stores are reused, so an interrupted run goes on. Each set is printed as soon as it is measured.
"""

import argparse
import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from waylore.evaluation import report
from waylore.evaluation.datasets import Dataset, limit_pages, read_dataset
from waylore.evaluation.index import extract_from_text, open_indexed
from waylore.evaluation.run import run_questions, show_progress
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.protocols import Embedder, Vectors
from waylore.providers.embedders.cached import CachedEmbedder
from waylore.providers.embedders.fastembed import FastEmbedder
from waylore.providers.embedders.hashing import HashingEmbedder
from waylore.providers.embedders.model2vec import Model2VecEmbedder
from waylore.providers.embedders.vectors import normalise_rows
from waylore.recipes import RECIPES
from waylore.types.knowledge import Vector

SETS = ("2wikimultihopqa", "musique", "hotpotqa")
METHODS = ("hybrid", "chain", "deep")


class MultilingualEncoder:
    """Google's multilingual universal sentence encoder (512 dimensions, 16 languages). It embeds one text a call."""

    name = "universal-sentence-encoder-multilingual-3, int8"
    dimension = 512

    def __init__(self, directory: Path) -> None:
        onnxruntime, extensions = map(importlib.import_module, ("onnxruntime", "onnxruntime_extensions"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.register_custom_ops_library(extensions.get_library_path())
        self._session = onnxruntime.InferenceSession(str(directory / "embedding_model_quantized.onnx"), options)
        self._input = self._session.get_inputs()[0].name

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row for each text, in order."""
        rows = [np.asarray(self._session.run(None, {self._input: [text]})[0]).ravel() for text in texts]
        return normalise_rows(rows, self.dimension)

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of a question. This model has no prefix."""
        return self.embed_passages([text]).ravel()


class NomicEmbedder:
    """nomic-embed-text-v1.5, which needs a prefix before questions and another before passages."""

    def __init__(self, directory: Path) -> None:
        self._model = FastEmbedder("nomic-ai/nomic-embed-text-v1.5", path=directory)
        self.name, self.dimension = self._model.name, self._model.dimension

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row for each text, in order."""
        return self._model.embed_passages([f"search_document: {text}" for text in texts])

    def embed_query(self, text: str) -> Vector:
        """Return the unit vector of a question."""
        return self._model.embed_query(f"search_query: {text}")

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Return one unit row for each question."""
        return self._model.embed_queries([f"search_query: {text}" for text in texts])


EMBEDDERS: dict[str, Callable[[Path], Embedder]] = {
    "bge-small": lambda directory: FastEmbedder(path=directory),
    "minilm": lambda directory: FastEmbedder("sentence-transformers/all-MiniLM-L6-v2", path=directory),
    "potion": Model2VecEmbedder,
    "multilingual": MultilingualEncoder,
    "nomic": NomicEmbedder,
    "hashing": lambda _: HashingEmbedder(quiet=True),
}


def measure(dataset: Dataset, name: str, embedder: Embedder, folder: Path | None) -> list[dict[str, Any]]:
    """Return a row for each method: the figures of the report, with the name of the embedder."""
    gold = {question.id: question.gold for question in dataset.questions}
    with open_indexed(dataset, embedder, folder) as store:
        runs = [
            run_questions(store, embedder, dataset, RECIPES[method], show_progress(f"{dataset.name} {name} {method}"))
            for method in METHODS
        ]
    return [{"embedder": name, **asdict(report.make_row(run, gold))} for run in runs]


def format_row(rows: Sequence[dict[str, Any]]) -> str:
    """Format the rows of one embedder and one set as a line of a Markdown table."""
    cells = [f"{row['recall'][5]:.1f} ({row['interval']['low']:.1f}–{row['interval']['high']:.1f})" for row in rows]
    return f"| {rows[0]['set']} | {rows[0]['embedder']} | {' | '.join(cells)} | {rows[-1]['recall'][20]:.1f} |"


def read_set(options: argparse.Namespace, name: str) -> Dataset:
    """Read a set with its triples or as rules read it, cut to the sample."""
    dataset = read_dataset(options.data / name, sample=options.sample)
    if options.pages:
        dataset = limit_pages(dataset, options.pages)
    return extract_from_text(dataset, RuleExtractor()) if options.read_by == "rules" else dataset


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="directory of benchmark sets")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--models", type=Path, default=Path(".cache/models"), help="directory of models")
    parser.add_argument("--embedders", nargs="+", choices=EMBEDDERS, default=["bge-small", "minilm", "potion"])
    parser.add_argument("--read-by", choices=("triples", "rules"), default="triples")
    parser.add_argument("--sample", type=int, help="number of questions of each set, evenly spread")
    parser.add_argument("--pages", type=int, help="number of pages: those of the questions, and others at random")
    parser.add_argument("--vectors", type=Path, help="folder for cached vectors")
    parser.add_argument("--folder", type=Path, help="folder for the stores of the sets, which are reused")
    parser.add_argument("--json", type=Path, help="file for the figures")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every embedder on every set, and print a line for each."""
    options = parse_options(arguments)
    results = []
    print(f"| set | embedder | {' | '.join(f'{method} R@5' for method in METHODS)} | deep R@20 |", flush=True)
    print("|---|---|---|---|---|---|", flush=True)
    for name in options.sets:
        dataset = read_set(options, name)
        for embedder in options.embedders:
            model = EMBEDDERS[embedder](options.models / embedder)
            cached = CachedEmbedder(model, options.vectors / embedder) if options.vectors else model
            rows = measure(dataset, embedder, cached, options.folder)
            results.extend(rows)
            print(format_row(rows), flush=True)
            if options.json:
                options.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()

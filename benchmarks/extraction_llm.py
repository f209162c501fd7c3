"""Extract facts from passages with a language model and without one, and compare results and cost.

    python -m benchmarks.extraction_llm --data SETS/musique-train100 --weights MODEL.gguf --beside rules

The passages are evenly spread over a set. The model is either served from weights by xllamacpp (`pip install
xllamacpp`) or by any server with `--base-url` and `--model`. Before the first request the estimated cost is
printed. Then the benchmark prints how many answers were valid at once, were repaired or were replaced by the
fallback, the facts per passage, tokens and seconds. `--beside` reads the same passages without a model.
`--cache` stores answers, so that an interrupted run continues. The set's own triples are not read.
"""

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from waylore.errors import ModelUnavailable, WayloreError
from waylore.evaluation.datasets import read_dataset
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.protocols import Extraction, Extractor
from waylore.providers.extractors.budget import Report
from waylore.providers.extractors.llm import MALFORMED, LLMExtractor
from waylore.providers.extractors.spacy import SpacyExtractor
from waylore.types.knowledge import IndexedDocument

CONTEXT_TOKENS = 8_192


@contextmanager
def serve_weights(weights: Path | None, base_url: str, threads: int) -> Iterator[str]:
    """Yield the address of a server: the given one, or one that serves these weights until the block ends."""
    if weights is None:
        yield base_url
        return
    try:
        xllamacpp = import_module("xllamacpp")
    except ImportError as error:
        raise ModelUnavailable("xllamacpp is not installed; run `pip install xllamacpp`") from error
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.n_ctx, params.n_parallel, params.port, params.verbosity = CONTEXT_TOKENS, 1, 0, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.cpuparams.poll = params.cpuparams_batch.poll = 0  # waiting threads must not use a core
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


def extract_pages(
    extractor: Extractor, pages: Sequence[IndexedDocument], *, show: bool
) -> tuple[list[Extraction], float]:
    """Run an extractor on all pages; return the extractions and the seconds."""
    found: list[Extraction] = []
    start = time.perf_counter()
    for page in pages:
        found += extractor.extract(page.document, page.passages)
        if show:
            print(f"\n{page.document.title} ({time.perf_counter() - start:.0f} s)")
            for claim in found[-1].facts:
                print(f"  {claim.subject} | {claim.predicate} | {claim.object}  ({claim.confidence:.2f})")
    return found, time.perf_counter() - start


def format_line(name: str, found: Sequence[Extraction], seconds: float) -> str:
    facts, names = sum(len(said.facts) for said in found), sum(len(said.names) for said in found)
    n = len(found)
    return f"{name:32s} {facts / n:5.1f} facts and {names / n:5.1f} names per passage, {seconds / n:8.3f} s"


def count_valid_answers(report: Report) -> int:
    """Return the number of answers that were valid at once; correct only if none came from the cache."""
    return report.answered - report.repaired - report.cut_off - report.fallbacks.get(MALFORMED, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True, help="folder of one set")
    parser.add_argument("--weights", type=Path, help="GGUF file to serve")
    parser.add_argument("--base-url", default="", help="address of a running server")
    parser.add_argument("--model", default="", help="name of the model there, default: name of the weights")
    parser.add_argument("--passages", type=int, default=10, help="number of passages")
    parser.add_argument("--max-tokens", type=int, default=1_024, help="maximum tokens of an answer")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="threads of the served model")
    parser.add_argument("--cache", type=Path, help="file that stores answers")
    parser.add_argument(
        "--beside", nargs="*", choices=["rules", "spacy"], default=[], help="extractors to compare with"
    )
    options = parser.parse_args()
    if bool(options.weights) == bool(options.base_url):
        parser.error("pass either --weights or --base-url")
    pages = read_dataset(options.data).pages
    chosen = pages[:: max(len(pages) // options.passages, 1)][: options.passages]
    try:
        with serve_weights(options.weights, options.base_url, options.threads) as url:
            measure_extractors(url, chosen, options)
    except WayloreError as error:
        raise SystemExit(f"error: {error}") from error


def measure_extractors(url: str, pages: Sequence[IndexedDocument], options: argparse.Namespace) -> None:
    """Run the model and the other extractors on the pages, and print a line for each."""
    with LLMExtractor(
        options.model or options.weights.stem,
        base_url=url,
        api_key=os.environ.get("OPENAI_API_KEY", ""),
        cache=options.cache,
        concurrency=1,
        max_tokens=options.max_tokens,
        timeout=1_800.0,
    ) as model:
        print(model.estimate([p for page in pages for p in page.passages]))
        rows = [(model.name, *extract_pages(model, pages, show=True))]
        rows += [(name, *extract_pages(_create_extractor(name), pages, show=True)) for name in options.beside]
        print(f"\n{model.report}\ncomplete and valid at once: {count_valid_answers(model.report)}\n")
        print("\n".join(format_line(*row) for row in rows))


def _create_extractor(name: str) -> Extractor:
    return RuleExtractor() if name == "rules" else SpacyExtractor(Path(".cache/models/spacy-sm"))


if __name__ == "__main__":
    main()

"""Reads passages with a language model and without one: what each finds, and what that costs.

    python -m benchmarks.extraction_llm --data SETS/musique-train100 --weights MODEL.gguf --beside rules

The passages are those of a set, evenly spread. The model is one whose weights it serves itself through xllamacpp (`pip
install xllamacpp`), or any server by `--base-url` and `--model`. Prints what it may cost before anything is sent;
then how many answers were valid at once, were repaired or fell back, facts for each passage, tokens and seconds.
`--beside` reads the same passages without a model. `--cache` keeps answers, so that a run that was interrupted goes
on. The set's own triples are not read.
"""

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

from waylore.errors import ModelUnavailable, WayloreError
from waylore.evaluation.datasets import load
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.protocols import Extraction, Extractor
from waylore.providers.extractors.budget import Report
from waylore.providers.extractors.llm import MALFORMED, LLMExtractor
from waylore.providers.extractors.spacy import SpacyExtractor
from waylore.types.knowledge import Contribution

CONTEXT = 8_192  # tokens that the served model may see


@contextmanager
def served(weights: Path | None, base_url: str, threads: int) -> Iterator[str]:
    """The address of a server: the one given, or one that serves these weights as long as this runs."""
    if weights is None:
        yield base_url
        return
    try:
        xllamacpp = import_module("xllamacpp")
    except ImportError as error:
        raise ModelUnavailable("xllamacpp is not installed; run `pip install xllamacpp`") from error
    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.n_ctx, params.n_parallel, params.port, params.verbosity = CONTEXT, 1, 0, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.cpuparams.poll = params.cpuparams_batch.poll = 0  # threads that wait let others work
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


def read(extractor: Extractor, pages: Sequence[Contribution], *, show: bool) -> tuple[list[Extraction], float]:
    """What an extractor finds in each page, and the seconds that it took."""
    found: list[Extraction] = []
    start = time.perf_counter()
    for page in pages:
        found += extractor.extract(page.document, page.passages)
        if show:
            print(f"\n{page.document.title} ({time.perf_counter() - start:.0f} s)")
            for claim in found[-1].claims:
                print(f"  {claim.subject} | {claim.predicate} | {claim.object}  ({claim.confidence:.2f})")
    return found, time.perf_counter() - start


def line(name: str, found: Sequence[Extraction], seconds: float) -> str:
    facts, names = sum(len(said.claims) for said in found), sum(len(said.names) for said in found)
    n = len(found)
    return f"{name:32s} {facts / n:5.1f} facts and {names / n:5.1f} names a passage, {seconds / n:8.3f} s"


def whole_at_once(report: Report) -> int:
    """Answers that were neither repaired nor cut off nor given up; right where none came from the cache."""
    return report.answered - report.repaired - report.cut_off - report.fell_back.get(MALFORMED, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--data", type=Path, required=True, help="the folder of one set")
    parser.add_argument("--weights", type=Path, help="a GGUF file to serve")
    parser.add_argument("--base-url", default="", help="a server that runs already")
    parser.add_argument("--model", default="", help="its name there; by default that of the weights")
    parser.add_argument("--passages", type=int, default=10)
    parser.add_argument("--max-tokens", type=int, default=1_024)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--beside", nargs="*", choices=["rules", "spacy"], default=[])
    options = parser.parse_args()
    if bool(options.weights) == bool(options.base_url):
        parser.error("give either --weights or --base-url")
    pages = load(options.data).contributions
    chosen = pages[:: max(len(pages) // options.passages, 1)][: options.passages]
    try:
        with served(options.weights, options.base_url, options.threads) as url:
            measure(url, chosen, options)
    except WayloreError as error:
        raise SystemExit(f"error: {error}") from error


def measure(url: str, pages: Sequence[Contribution], options: argparse.Namespace) -> None:
    """Read the pages with the model and beside it, and print what came of it."""
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
        rows = [(model.name, *read(model, pages, show=True))]
        rows += [(name, *read(_beside(name), pages, show=True)) for name in options.beside]
        print(f"\n{model.report}\nwhole and valid at once: {whole_at_once(model.report)}\n")
        print("\n".join(line(*row) for row in rows))


def _beside(name: str) -> Extractor:
    return RuleExtractor() if name == "rules" else SpacyExtractor(Path(".cache/models/spacy-sm"))


if __name__ == "__main__":
    main()

"""Score the relations of labelled pages before and after a language model has enriched them, and print its cost.

    python tools/models.py qwen-coder && pip install xllamacpp
    python -m benchmarks.pages.enrich --weights .cache/models/qwen-coder/qwen2.5-coder-1.5b-instruct-q4.gguf --cache FILE

The pages are evenly spread over the English ones of this directory. They are added with the rules, as by default, then
`Waylore.enrich` reads them with the model, which is served from weights by xllamacpp or by any server with `--base-url`
and `--model`. `--cache` stores answers, so that an interrupted run continues.
"""

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.extraction_llm import serve_weights
from benchmarks.pages.__main__ import DIRECTORY
from waylore import Waylore
from waylore.evaluation.folders.index import read_stored
from waylore.evaluation.folders.labels import LabelledPage, StoredPage, read_pages, score_pages
from waylore.evaluation.folders.questions import FILES
from waylore.evaluation.folders.report import format_pages
from waylore.indexing import exports
from waylore.providers.extractors.llm import LLMExtractor
from waylore.types.identity import make_enrichment_uri

FOLDER = "own"
OTHER_LANGUAGES = ("deutsch", "francais")
CHOSEN = {"measured": "yes"}  # metadata of the pages


def choose_pages(number: int) -> list[LabelledPage]:
    """Return pages in English, evenly spread."""
    pages = [page for page in read_pages(DIRECTORY, FOLDER) if not page.path.startswith(OTHER_LANGUAGES)]
    return pages[:: max(len(pages) // number, 1)][:number]


def read_enriched(memory: Waylore, page: LabelledPage) -> StoredPage:
    """Return the stored names and relations of a page, with those that the model added."""
    stored = read_stored(memory, page)
    _, documents = exports.read_export(memory.export_lines())
    own = {make_enrichment_uri(document.id) for document in memory.documents(under=page.path)}
    added = [indexed for indexed in documents if indexed.document.uri in own]
    names = dict.fromkeys([*stored.names, *(entity.name for each in added for entity in each.entities)])
    triples = ((fact.subject, fact.predicate, fact.object) for each in added for fact in each.facts)
    return replace(stored, names=tuple(names), relations=tuple(dict.fromkeys([*stored.relations, *triples])))


def measure(memory: Waylore, model: LLMExtractor, pages: Sequence[LabelledPage]) -> None:
    """Add the pages, enrich them, and print scores and costs."""
    for page in pages:
        files = DIRECTORY / FOLDER / FILES
        memory.add_files(files / page.path, root=files, metadata=CHOSEN)
    before = score_pages([(page, read_stored(memory, page)) for page in pages])
    print(f"by rules\n\n{format_pages(before, sorted(before))}\n", flush=True)
    start = time.perf_counter()
    enrichment = memory.enrich(model, where=CHOSEN, progress=lambda done: print(f"  {done}", flush=True))
    after = score_pages([(page, read_enriched(memory, page)) for page in pages])
    print(f"\nenriched by {model.name}\n\n{format_pages(after, sorted(after))}\n")
    print(f"{enrichment}\n{model.report}\n{time.perf_counter() - start:.0f} s")


def main() -> None:
    """Enrich some labelled pages, and print the scores before and after."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pages.enrich", description="Score enriched pages.")
    parser.add_argument("--weights", type=Path, help="GGUF file to serve")
    parser.add_argument("--base-url", default="", help="address of a running server")
    parser.add_argument("--model", default="", help="name of the model there, default: name of the weights")
    parser.add_argument("--pages", type=int, default=10, help="number of pages")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="threads of the served model")
    parser.add_argument("--parallel", type=int, default=1, help="number of passages that the model reads at once")
    parser.add_argument("--cache", type=Path, help="file that stores answers")
    options = parser.parse_args()
    if bool(options.weights) == bool(options.base_url):
        parser.error("pass either --weights or --base-url")
    with (
        TemporaryDirectory() as folder,
        serve_weights(options.weights, options.base_url, options.threads) as url,
        Waylore.open(Path(folder) / "pages.waylore") as memory,
        LLMExtractor(
            options.model or options.weights.stem,
            base_url=url,
            api_key=os.environ.get("OPENAI_API_KEY", ""),
            cache=options.cache,
            concurrency=options.parallel,
            max_tokens=1_024,
            timeout=1_800.0,
        ) as model,
    ):
        measure(memory, model, choose_pages(options.pages))


if __name__ == "__main__":
    main()

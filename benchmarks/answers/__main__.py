"""Let a small language model answer questions with different contexts, and score its answers.

    python tools/models.py qwen-coder && pip install xllamacpp
    python -m benchmarks.answers --data ../shared/data --folders ../shared/folders --model .cache/models/bge-small \\
      --weights .cache/models/qwen-coder/qwen2.5-coder-1.5b-instruct-q4.gguf --cache DIR --vectors DIR --folder DIR

Each question is asked without a context, with those of hybrid search and of the default, and with the gold. The model
is served from weights by xllamacpp, or by any server with `--base-url` and `--llm`; its key is OPENAI_API_KEY. The sets
take turns, so that an interrupted run has as many answers of each, and Ctrl+C prints the table of these. `--cache` keeps
the answers, so that the next run continues; `--table` prints the table of these and asks nothing.
"""

import argparse
import os
from contextlib import closing
from pathlib import Path

from benchmarks.answers.ask import ask_missing, open_chat, read_answered
from benchmarks.answers.questions import list_asked
from benchmarks.answers.table import format_table
from benchmarks.extraction_llm import serve_weights
from waylore.errors import WayloreError
from waylore.evaluation.index import add_embedder_options
from waylore.providers.disk_cache import ANSWERS, DiskCache

SETS = ("musique", "2wikimultihopqa", "locomo")


def main(arguments: list[str] | None = None) -> None:
    """Ask the model, and print a table of its answers."""
    parser = _create_parser()
    options = parser.parse_args(arguments)
    if bool(options.weights) == bool(options.base_url):
        parser.error("pass either --weights or --base-url")
    if not (options.weights or options.llm):
        parser.error("--base-url needs --llm, the name of the model there")
    try:
        measure_answers(options)
    except WayloreError as error:
        raise SystemExit(f"error: {error}") from error


def measure_answers(options: argparse.Namespace) -> None:
    """Ask what was not asked before, unless only the table is wanted, and print the table."""
    asked, model = list_asked(options), options.llm or options.weights.stem
    with closing(DiskCache(ANSWERS, options.cache)) as cache:
        try:
            if not options.table:
                with (
                    serve_weights(options.weights, options.base_url, options.threads) as url,
                    open_chat(model, url, os.environ.get("OPENAI_API_KEY", "")) as chat,
                ):
                    ask_missing(chat, model, cache, asked, parallel=options.parallel)
        except KeyboardInterrupt:
            print("interrupted; the next run with this --cache continues")
        print(f"\n{model}, contexts of {options.tokens:,} tokens\n")
        print(format_table(list(read_answered(model, cache, asked))))


def _create_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.answers", description="Score a model's answers.")
    parser.add_argument("--data", type=Path, required=True, help="directory of benchmark sets")
    parser.add_argument("--sets", nargs="+", default=SETS, help="sets to ask about")
    parser.add_argument("--folders", type=Path, help="directory of folders to ask about, their test questions")
    parser.add_argument("--only", nargs="+", default=[], help="folders of that directory")
    parser.add_argument("--questions", type=int, default=50, help="number of questions of each set and of all folders")
    parser.add_argument("--tokens", type=int, default=1_000, help="tokens of a context")
    parser.add_argument("--sample", type=int, default=100, help="questions whose pages a set keeps; some are asked")
    parser.add_argument("--passages", type=int, default=1_500, help="pages of a set")
    parser.add_argument("--weights", type=Path, help="GGUF file to serve")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="threads of the served model")
    parser.add_argument("--base-url", default="", help="address of a running server")
    parser.add_argument("--parallel", type=int, default=1, help="prompts that are sent at the same time")
    parser.add_argument("--llm", default="", help="name of the model there, default: name of the weights")
    parser.add_argument("--cache", type=Path, help="directory that keeps answers")
    parser.add_argument("--table", action="store_true", help="ask nothing, print the table of the cached answers")
    add_embedder_options(parser)
    parser.set_defaults(split="test", read_by=["triples"], every=1)
    return parser


if __name__ == "__main__":
    main()

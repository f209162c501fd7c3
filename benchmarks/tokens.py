"""Compare the estimate of tokens with what tokenizers count, on passages of every set and folder.

    python -m benchmarks.tokens --data ../shared/data --folders ../shared/folders

Needs the extra `tokens`. For each set and folder it prints the estimate as a ratio to o200k and to cl100k, over up to
`--sample` passages together.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from waylore import Waylore
from waylore.evaluation.datasets import read_dataset
from waylore.evaluation.folders.questions import FILES
from waylore.indexing import exports
from waylore.providers.tokens import create_counter
from waylore.text import estimate_tokens

ENCODINGS = ("o200k_base", "cl100k_base")
MAX_CHARACTERS = 20_000  # of a passage


def read_folder(files: Path) -> list[str]:
    """Return the passages of a folder as a user would add it."""
    with TemporaryDirectory() as folder, Waylore.open(Path(folder) / "folder.waylore") as memory:
        memory.add_files(files)
        _, documents = exports.read_export(memory.export_lines())
        return [passage.text for indexed in documents for passage in indexed.passages]


def list_texts(sets: Path | None, folders: Path | None) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the passages of each set and folder."""
    for path in sorted(sets.iterdir()) if sets else ():
        if path.is_dir() and (path / "corpus.jsonl.gz").exists():
            yield path.name, [passage.text for page in read_dataset(path).pages for passage in page.passages]
    for path in sorted(folders.glob(f"*/{FILES}")) if folders else ():
        yield path.parent.name, read_folder(path)


def compare(texts: Sequence[str], sample: int) -> list[float]:
    """Return the estimate of some texts together as a ratio to the count of each encoding."""
    chosen = [text[:MAX_CHARACTERS] for text in Random(0).sample(texts, min(sample, len(texts)))]
    estimate = sum(map(estimate_tokens, chosen))
    return [estimate / sum(map(create_counter(name), chosen)) for name in ENCODINGS]


def main() -> None:
    """Print a line for each set and folder, and fail if one is off by more than a tenth."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tokens", description="Compare estimated tokens.")
    parser.add_argument("--data", type=Path, help="folder of the sets")
    parser.add_argument("--folders", type=Path, help="directory of folders")
    parser.add_argument("--sample", type=int, default=400, help="passages of each")
    options = parser.parse_args()
    print(f"{'estimate / count':32s}{''.join(f'{name:>14s}' for name in ENCODINGS)}")
    ratios = {name: compare(texts, options.sample) for name, texts in list_texts(options.data, options.folders)}
    for name, of_encodings in ratios.items():
        print(f"{name:32s}{''.join(f'{ratio:14.2f}' for ratio in of_encodings)}")
    off = [name for name, of_encodings in ratios.items() if not 0.9 <= of_encodings[0] <= 1.1]
    if off:
        raise SystemExit(f"off by more than a tenth: {', '.join(off)}")


if __name__ == "__main__":
    main()

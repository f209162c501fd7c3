"""Let readers judge the relations that rules read of labelled pages, and complete the labels by what all call true.

    python -m benchmarks.pages ../shared/folders --said said.jsonl              write all relations, to be judged
    python -m benchmarks.pages ../shared/folders --judged benchmarks/judged_relations.jsonl

Labels list the true relations that somebody thought of, so a true one that nobody listed counts as wrong. Readers get all
relations that were read, those with a label too, and are not told which have one. A judgement is a line of JSON: the
reader, the id of the relation, whether the page says it, and why not. Ids are hashes, because the pages are not ours.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from waylore.evaluation.folders.labels import LabelledPage, StoredPage, Triple

Pages = Sequence[tuple[LabelledPage, StoredPage]]
ID_DIGITS = 12


def make_id(page: LabelledPage, triple: Triple) -> str:
    """Return the id of a relation of a page."""
    return sha256("\n".join((page.folder, page.path, *triple)).encode()).hexdigest()[:ID_DIGITS]


def write_said(pages: Pages, file: Path) -> None:
    """Write the relations of all pages, a line of JSON each."""
    rows = (
        {"id": make_id(page, triple), "page": f"{page.folder}/files/{page.path}", "relation": triple}
        for page, stored in pages
        for triple in stored.relations
    )
    file.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), "utf-8")


def read_judgements(file: Path) -> dict[str, dict[str, bool]]:
    """Return for each reader which relations are true, by their ids."""
    judged: dict[str, dict[str, bool]] = defaultdict(dict)
    for row in map(json.loads, file.read_text("utf-8").splitlines()):
        judged[row["reader"]][row["id"]] = row["true"]
    return dict(judged)


def count_judgements(pages: Pages, judged: dict[str, dict[str, bool]]) -> str:
    """Return how many of the relations of each split each reader calls true, and how many all of them do."""
    lines = []
    for split in sorted({page.split for page, _ in pages}):
        ids = [make_id(page, triple) for page, stored in pages if page.split == split for triple in stored.relations]
        true = {reader: {id_ for id_ in ids if known.get(id_)} for reader, known in judged.items()}
        counts = [f"{reader} {len(found)}" for reader, found in true.items()]
        every = len(set.intersection(*true.values()))
        lines.append(f"{split}: of {len(ids)} relations are true by {', '.join([*counts, f'all {every}'])}")
    return "\n".join(lines)


def complete_labels(pages: Pages, judged: Iterable[dict[str, bool]]) -> Pages:
    """Return the pages with every relation that all readers call true among those that are true."""
    readers = list(judged)

    def complete(page: LabelledPage, stored: StoredPage) -> LabelledPage:
        ids = ((triple, make_id(page, triple)) for triple in stored.relations)
        true = (triple for triple, id_ in ids if readers and all(reader.get(id_) for reader in readers))
        return replace(page, also=(*page.also, *true))

    return [(complete(page, stored), stored) for page, stored in pages]

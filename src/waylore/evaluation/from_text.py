"""A benchmark set indexed from its text alone: what an extractor finds takes the place of the set's triples.

The set's triples and entities are dropped unread; documents, passages and questions stay. What was found is put
together as it is for any file.
"""

from dataclasses import replace

from waylore.evaluation.datasets import Dataset
from waylore.indexing.assembling import assembled
from waylore.models import Extractor


def from_text(dataset: Dataset, extractor: Extractor) -> Dataset:
    """The set as an extractor reads it."""
    pages = [
        assembled(page.document, page.passages, extractor.extract(page.document, page.passages))
        for page in dataset.contributions
    ]
    return replace(dataset, name=f"{dataset.name}, {extractor.name}", contributions=tuple(pages))

"""Names by spaCy with real weights, and the errors if spaCy or its weights are missing."""

import sys
from pathlib import Path

import pytest

from requirements import find_model
from waylore.errors import ModelUnavailable
from waylore.protocols import Extractor
from waylore.providers.extractors.spacy import SpacyExtractor
from waylore.types.knowledge import Document, Passage

pytestmark = pytest.mark.slow

TEXT = (
    "Inception is a film by Christopher Nolan. It stars Leonardo DiCaprio and was shot in Tokyo in 2009. "
    "See [[Heist film]] for more."
)


@pytest.fixture(scope="module")
def model() -> SpacyExtractor:
    directory = find_model("spacy-sm")
    pytest.importorskip("spacy")
    return SpacyExtractor(directory)


@pytest.mark.model
def test_name_has_version(model: SpacyExtractor) -> None:
    assert isinstance(model, Extractor)
    assert model.name.startswith("spacy-1:en_")


@pytest.mark.model
def test_names_include_chunks_and_exclude_dates(model: SpacyExtractor) -> None:
    said = model.extract(Document("d", "Inception"), [Passage("p", "d", TEXT, "Inception")])[0]
    assert {"Inception", "Christopher Nolan", "Leonardo DiCaprio", "Tokyo", "Heist film"} <= set(said.names)
    assert said.names["Tokyo"] == "place"
    assert "2009" not in said.names


@pytest.mark.model
def test_sentences_and_links_become_facts(model: SpacyExtractor) -> None:
    said = model.extract(Document("d", "Inception"), [Passage("p", "d", TEXT, "Inception")])[0]
    claims = {(c.subject, c.predicate, c.object): c.statement for c in said.facts}
    assert ("Inception", "", "Heist film") in claims
    assert claims["Inception", "stars", "Leonardo DiCaprio"].startswith("Inception stars Leonardo")


@pytest.mark.model
def test_each_passage_has_extraction(model: SpacyExtractor) -> None:
    passages = [Passage("a", "d", "Mara met Kofi."), Passage("b", "d", ""), Passage("c", "d", "Nobody came.")]
    found = model.extract(Document("d"), passages)
    assert [len(said.facts) for said in found] == [1, 0, 0]


def test_missing_spacy_names_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ModelUnavailable, match=r"pip install 'waylore\[spacy\]'"):
        SpacyExtractor()


def test_directory_without_pipeline_raises(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    with pytest.raises(ModelUnavailable, match="spacy download"):
        SpacyExtractor(tmp_path)

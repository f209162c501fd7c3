"""spaCy's names with real weights, and what is said where spaCy or its weights are missing."""

import os
import sys
from pathlib import Path

import pytest
from tools.models import CACHE, damaged

from waylore.errors import ModelUnavailable
from waylore.protocols import Extractor
from waylore.providers.extractors.spacy import SpacyExtractor
from waylore.types.knowledge import Document, Passage

TEXT = (
    "Inception is a film by Christopher Nolan. It stars Leonardo DiCaprio and was shot in Tokyo in 2009. "
    "See [[Heist film]] for more."
)


@pytest.fixture(scope="module")
def model() -> SpacyExtractor:
    directory = CACHE / "spacy-sm"
    if damaged("spacy-sm", directory):
        remedy = f"{directory} is missing or damaged; run `python tools/protocols.py spacy-sm`"
        pytest.fail(remedy) if os.environ.get("CI") else pytest.skip(remedy)
    pytest.importorskip("spacy")
    return SpacyExtractor(directory)


@pytest.mark.model
def test_it_names_its_version(model: SpacyExtractor) -> None:
    assert isinstance(model, Extractor)
    assert model.name.startswith("spacy-1:en_")


@pytest.mark.model
def test_entities_and_proper_noun_chunks_are_names_and_dates_are_not(model: SpacyExtractor) -> None:
    said = model.extract(Document("d", "Inception"), [Passage("p", "d", TEXT, "Inception")])[0]
    assert {"Inception", "Christopher Nolan", "Leonardo DiCaprio", "Tokyo", "Heist film"} <= set(said.names)
    assert said.names["Tokyo"] == "place"
    assert "2009" not in said.names


@pytest.mark.model
def test_a_sentence_is_a_claim_and_a_link_a_typed_one(model: SpacyExtractor) -> None:
    said = model.extract(Document("d", "Inception"), [Passage("p", "d", TEXT, "Inception")])[0]
    claims = {(c.subject, c.predicate, c.object): c.statement for c in said.claims}
    assert ("Inception", "links_to", "Heist film") in claims
    assert claims["Inception", "stars", "Leonardo DiCaprio"].startswith("Inception stars Leonardo")


@pytest.mark.model
def test_each_passage_has_its_extraction(model: SpacyExtractor) -> None:
    passages = [Passage("a", "d", "Mara met Kofi."), Passage("b", "d", ""), Passage("c", "d", "Nobody came.")]
    found = model.extract(Document("d"), passages)
    assert [len(said.claims) for said in found] == [1, 0, 0]


def test_without_spacy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ModelUnavailable, match=r"pip install 'waylore\[spacy\]'"):
        SpacyExtractor()


def test_a_directory_without_a_pipeline_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("spacy")
    with pytest.raises(ModelUnavailable, match="spacy download"):
        SpacyExtractor(tmp_path)

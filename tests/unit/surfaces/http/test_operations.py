"""The operations of the OpenAPI document have the names that clients generated from it call."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from waylore.settings.sections import Settings
from waylore.surfaces.http.app import create_app

NAMES = """
    listCollections getCollection putCollection deleteCollection getStats getInsight exportCollection
    addDocument listDocuments getDocument forgetDocument forgetDocuments getReceipt verifyReceipt addFacts
    listMerges markDistinct
    rememberMessages
    searchCollection renderContext explainHit
    listFacts getRelated getConnection listEntities getTimeline getProfile listChanges getProvenance
    uploadFile importFile startJob listJobs getJob cancelJob followJob
    listKeys createKey rotateKey revokeKey auditKeys auditCollection
    quarantineAuthor releaseAuthor forgetQuarantined listQuarantined
    checkLiveness checkReadiness
""".split()  # a renamed operation breaks the programs that call it


@pytest.fixture(scope="module")
def operations() -> list[dict[str, Any]]:
    document = create_app(Settings.model_construct()).openapi()
    return [operation for methods in document["paths"].values() for operation in methods.values()]


def find_links(operations: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the operation that each link of a response leads to."""
    for operation in operations:
        for response in operation["responses"].values():
            yield from (link["operationId"] for link in response.get("links", {}).values())


def test_operations_keep_their_names(operations: list[dict[str, Any]]) -> None:
    assert Counter(each["operationId"] for each in operations) == Counter(NAMES)
    assert all(re.fullmatch("[a-z]+[A-Z][a-zA-Z]+", name) for name in NAMES)


def test_links_lead_to_operations(operations: list[dict[str, Any]]) -> None:
    links = set(find_links(operations))
    assert "getDocument" in links
    assert links <= set(NAMES)


def test_summaries_are_the_names_in_words(operations: list[dict[str, Any]]) -> None:
    for each in operations:
        words = re.sub("[A-Z]", lambda letter: f" {letter[0].lower()}", each["operationId"])
        assert each["summary"] == words.capitalize()

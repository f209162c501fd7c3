"""Requests accept every method that the engine has, in any case."""

from typing import get_args

import pytest
from pydantic import ValidationError

from waylore.recipes import METHODS
from waylore.surfaces.error_kinds import SYNONYMS, describe_unknown
from waylore.surfaces.http.requests import MethodName, SearchRequest


def test_schema_lists_every_method() -> None:
    assert get_args(MethodName) == METHODS


@pytest.mark.parametrize("method", ["Graph", "AGENTIC", "auto", "graph_only"])
def test_methods_have_no_case(method: str) -> None:
    assert SearchRequest(query="x", method=method).method == method.lower()  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["magic", "", 3])
def test_other_methods_are_refused(method: object) -> None:
    with pytest.raises(ValidationError):
        SearchRequest(query="x", method=method)  # type: ignore[arg-type]


def test_defaults_are_those_of_the_service() -> None:
    request = SearchRequest(query="x")
    assert (request.method, request.top_k) == (None, None)


def test_unknown_name_gets_synonym_similar_name_or_list() -> None:
    known = ("query", "top_k", "where")
    assert describe_unknown("field", "limit", known) == "unknown field limit; use top_k"
    assert describe_unknown("field", "qeury", known) == "unknown field qeury; use query"
    assert describe_unknown("argument", "xyz", known) == "unknown argument xyz; use query, top_k, where"


def test_synonyms_are_listed_once_in_a_group() -> None:
    assert all(len(set(group)) == len(group) for group in SYNONYMS)

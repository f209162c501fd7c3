"""The conformance tests must fail on a broken store: twenty-one broken stores, and the test that detects each."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
DETECTED_BY = [
    ("AfterwardsFilteringStore", "test_filters_do_not_reduce_number_of_hits"),
    ("IncompleteForgettingStore", "test_forget_equals_never_having_added"),
    ("UncheckedStore", "test_find_remains_reports_document_added_again"),
    ("HiddenAssertionStore", "test_hidden_assertion_is_not_used"),
    ("StrongestAssertionsStore", "test_newest_assertions_come_first"),
    ("PartialWritingStore", "test_batch_is_written_completely_or_not_at_all"),
    ("UnstableTiesStore", "test_ties_are_broken_by_id"),
    ("HiddenNamesStore", "test_hidden_name_is_similar_to_nothing"),
    ("HiddenScoresStore", "test_reads_hide_document_without_permission"),
    ("HiddenCountsStore", "test_counts_and_scores_are_of_visible_documents"),
    ("HiddenTermsStore", "test_terms_are_counted_in_visible_passages"),
    ("HiddenMentionsStore", "test_counts_and_scores_are_of_visible_documents"),
    ("HiddenFactsStore", "test_hidden_facts_are_not_counted"),
    ("HiddenPairsStore", "test_reads_hide_document_without_permission"),
    ("HiddenEntitiesStore", "test_entities_are_listed_by_id_and_type"),
    ("HiddenMatchesStore", "test_passages_are_found_by_the_beginning_of_their_id"),
    ("HiddenTurnsStore", "test_turns_come_with_neighbours_of_session_and_role"),
    ("ScaledScoresStore", "test_word_scores_equal_lexical_scores"),
    ("AuthorlessStore", "test_limited_author_replaces_only_documents_with_its_own_labels"),
    ("SharedLabelStore", "test_limited_author_forgets_only_documents_with_its_own_labels"),
    ("TrustingStore", "test_source_is_lowered_to_that_of_the_author"),
    ("MixedUsersStore", "test_other_users_change_no_score"),
    ("UntimedListStore", "test_documents_of_a_scope_are_listed"),
    ("UnexpiringStore", "test_every_read_hides_expired_document"),
]
HARMLESS = "test_empty_collection_finds_nothing"  # no defect concerns it
CLASS = """
class Test{store}(StoreConformance):
    @pytest.fixture
    def open_store(self, tmp_path):
        return lambda collection: broken.{store}(tmp_path / "broken.waylore", collection)
"""
HEAD = """
import pytest
from store import broken
from waylore.testing import StoreConformance
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """Run on each store the test that detects it and a harmless one; return the outcomes by store and test."""
    folder = tmp_path_factory.mktemp("broken")
    module = folder / "test_broken.py"
    module.write_text(HEAD + "".join(CLASS.format(store=store) for store, _ in DETECTED_BY))
    chosen = [f"{module}::Test{store}::{test}" for store, failing in DETECTED_BY for test in (failing, HARMLESS)]
    options = ["-q", "-rA", "--tb=no", "-p", "no:cacheprovider", "-p", "no:randomly"]
    command = [sys.executable, "-m", "pytest", *options, f"--override-ini=pythonpath={TESTS}", *chosen]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert run.returncode == 1, run.stdout + run.stderr
    found: dict[str, dict[str, str]] = {}
    for outcome, store, test in re.findall(r"^(PASSED|FAILED|ERROR) \S+::Test(\w+)::(\w+)", run.stdout, re.MULTILINE):
        found.setdefault(store, {})[test] = outcome
    return found


@pytest.mark.parametrize(("store", "failing_test"), DETECTED_BY)
def test_broken_store_fails_conformance(outcomes: dict[str, dict[str, str]], store: str, failing_test: str) -> None:
    assert outcomes[store] == {failing_test: "FAILED", HARMLESS: "PASSED"}

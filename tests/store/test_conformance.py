"""The conformance tests must fail on a broken store: fifteen broken stores, and the test that detects each."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
MODULE = """
import pytest
from store.broken import {store}
from waylore.testing import StoreConformance

class TestBroken(StoreConformance):
    @pytest.fixture
    def open_store(self, tmp_path):
        return lambda collection: {store}(tmp_path / "broken.waylore", collection)
"""


@pytest.mark.parametrize(
    ("store", "failing_test"),
    [
        ("AfterwardsFilteringStore", "test_filters_do_not_reduce_number_of_hits"),
        ("IncompleteForgettingStore", "test_forget_equals_never_having_added"),
        ("UncheckedStore", "test_find_remains_reports_document_added_again"),
        ("HiddenAssertionStore", "test_hidden_assertion_is_not_used"),
        ("PartialWritingStore", "test_batch_is_written_completely_or_not_at_all"),
        ("UnstableTiesStore", "test_ties_are_broken_by_id"),
        ("HiddenNamesStore", "test_hidden_name_is_similar_to_nothing"),
        ("HiddenScoresStore", "test_reads_hide_document_without_permission"),
        ("HiddenCountsStore", "test_counts_and_scores_are_of_visible_documents"),
        ("HiddenMentionsStore", "test_counts_and_scores_are_of_visible_documents"),
        ("HiddenFactsStore", "test_hidden_facts_are_not_counted"),
        ("HiddenPairsStore", "test_reads_hide_document_without_permission"),
        ("ScaledScoresStore", "test_word_scores_equal_lexical_scores"),
        ("AuthorlessStore", "test_limited_author_replaces_only_documents_with_its_own_labels"),
        ("SharedLabelStore", "test_limited_author_forgets_only_documents_with_its_own_labels"),
        ("TrustingStore", "test_source_is_lowered_to_that_of_the_author"),
    ],
)
def test_broken_store_fails_conformance(tmp_path: Path, store: str, failing_test: str) -> None:
    (tmp_path / "test_broken.py").write_text(MODULE.format(store=store))
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", f"--override-ini=pythonpath={TESTS}"]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 1, run.stdout + run.stderr
    assert failing_test in run.stdout
    assert " passed" in run.stdout

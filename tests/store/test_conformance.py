"""The conformance suite must fail on a store that is broken: here are six, and the tests that catch them."""

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
    ("store", "caught_by"),
    [
        ("FiltersAfterwards", "test_filters_do_not_eat_into_the_answer"),
        ("KeepsSomething", "test_forgetting_is_never_having_added"),
        ("LooksNowhere", "test_what_is_there_again_is_told"),
        ("HearsHiddenVoices", "test_a_hidden_voice_is_not_heard"),
        ("WritesByHalves", "test_a_batch_is_written_whole_or_not_at_all"),
        ("BreaksTiesByArrival", "test_ties_are_broken_by_identity"),
        ("IntroducesHiddenNames", "test_a_hidden_name_is_alike_to_nothing"),
    ],
)
def test_a_broken_store_is_caught(tmp_path: Path, store: str, caught_by: str) -> None:
    (tmp_path / "test_broken.py").write_text(MODULE.format(store=store))
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:randomly", f"--override-ini=pythonpath={TESTS}"]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 1, run.stdout + run.stderr
    assert caught_by in run.stdout
    assert " passed" in run.stdout

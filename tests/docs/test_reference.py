"""The reference is what the code says; `python -m tools.reference` writes it."""

import pytest
from tools.reference import FOLDER, PAGES, main


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_what_the_code_says(page: str) -> None:
    assert (FOLDER / page).read_text("utf-8") == PAGES[page]()


def test_a_page_that_is_not_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["--check"]) == 0
    monkeypatch.setitem(PAGES, "cli.md", lambda: "another page")
    assert main(["--check"]) == 1
    assert "docs/reference/cli.md is not what the code says" in capsys.readouterr().out

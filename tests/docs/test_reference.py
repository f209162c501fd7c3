"""The reference is what the code says; `python -m tools.reference` writes it."""

import pytest
from tools.reference.__main__ import PAGES, PAGES_FOLDER, main


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_what_the_code_says(page: str) -> None:
    assert (PAGES_FOLDER / page).read_text("utf-8") == PAGES[page]()


def test_a_page_that_is_not_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["--check"]) == 0
    monkeypatch.setitem(PAGES, "cli.md", lambda: "another page")
    assert main(["--check"]) == 1
    assert "docs/reference/cli.md differs from the code" in capsys.readouterr().out

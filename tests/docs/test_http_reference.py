"""The page of the reference about HTTP is what the code says."""

from tools.reference_http import PAGE, http


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text("utf-8") == http(), "run python -m tools.reference_http"

"""Random pages and filters for tests that compare the rankings of two engines."""

from typing import TypeAlias

from hypothesis import strategies as st

from waylore.types.search import Filter

DrawnPage: TypeAlias = tuple[str, tuple[str, ...], dict[str, str]]  # text, labels, metadata
WORDS = "mill falcon harbour lantern river anvil orchard violin glacier saddle comet parsley".split()
filters = st.builds(
    Filter,
    labels=st.sampled_from([None, frozenset({"red"}), frozenset()]),
    metadata=st.sampled_from([{}, {}, {"lang": "en"}, {"lang": ["en", "fr"]}]),
)


def draw_pages(most: int) -> st.SearchStrategy[list[DrawnPage]]:
    """Draw up to so many pages with few words, some of them with labels or a language."""
    drawn = st.builds(
        lambda words, labels, lang: (" ".join(words), labels, {"lang": lang} if lang else {}),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=9),
        st.sampled_from([(), (), ("red",), ("blue", "red")]),
        st.sampled_from(["", "en", "fr"]),
    )
    return st.lists(drawn, min_size=1, max_size=most)

"""With a small budget, the best sentences of passages are chosen, and lists, tables and code stay whole."""

from hypothesis import given
from hypothesis import strategies as st

from waylore.retrieval.context.sentences import Part, join_parts, order_parts, split_parts

QUARRY = "Quarry was founded in 1998. It keeps all blobs of the shop. Its owner is the Logistics team."
HARBOR = "Harbor answers requests. It has been rewritten twice. Harbor depends on Quarry for its files."
PROSE = st.lists(
    st.sampled_from(
        ["Go.", "Dr. Ada sails.", "水。", "x" * 30 + ".", "\n\n", "\n", "- item\n", "| a | b |\n", "  ", "…", "ends?"]
    )
).map(" ".join)


def read(text: str) -> list[str]:
    return [text[start:end] for start, end in split_parts(text)]


def test_sentences_are_split_and_blocks_are_whole() -> None:
    first = "First things first, they say. Dr. Ada said so herself."
    text = f"{first}\n\n- one. Two.\n- three.\n\n| a | b |\n|---|---|\n\nThe end."
    assert read(text) == [
        "First things first, they say.",
        "Dr. Ada said so herself.",
        "- one. Two.\n- three.",
        "| a | b |\n|---|---|",
        "The end.",
    ]


def test_best_sentence_comes_first_and_later_ones_after_next_passages() -> None:
    parts = order_parts("Is the Logistics team its owner?", [QUARRY, HARBOR], [[], ["Quarry"]])
    assert [(QUARRY, HARBOR)[part.passage][part.start : part.end] for part in parts] == [
        "Its owner is the Logistics team.",
        "Quarry was founded in 1998.",
        "It keeps all blobs of the shop.",
        "Harbor answers requests.",
        "Harbor depends on Quarry for its files.",
        "It has been rewritten twice.",
    ]


def test_gaps_are_marked() -> None:
    spans = [Part(0, *span) for span in split_parts(QUARRY)]
    assert join_parts(QUARRY, [spans[2], spans[0]]) == "Quarry was founded in 1998. … Its owner is the Logistics team."
    assert join_parts(QUARRY, spans[:2]) == "Quarry was founded in 1998. It keeps all blobs of the shop. …"
    assert join_parts(QUARRY, spans) == QUARRY


@given(st.lists(PROSE, min_size=1, max_size=4), PROSE)
def test_parts_cover_each_text_once(texts: list[str], question: str) -> None:
    parts = order_parts(question, texts, [[]] * len(texts))
    assert len(set(parts)) == len(parts)
    for number, text in enumerate(texts):
        own = [part for part in parts if part.passage == number]
        assert " ".join(text[part.start : part.end] for part in sorted(own)).split() == text.split()
        assert join_parts(text, own).split() == text.split()

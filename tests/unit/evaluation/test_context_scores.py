"""A context has an answer if it shows it of a gold page, and support if it shows all sentences that are needed."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waylore import Waylore
from waylore.errors import ConfigError
from waylore.evaluation.contexts.questions import (
    ContextQuestion,
    fold,
    list_folder_questions,
    list_set_questions,
    list_turn_questions,
    read_answers,
    read_marks,
    support_by,
)
from waylore.evaluation.contexts.scoring import ContextScores, ShownText, list_shown, score_context
from waylore.evaluation.conversations.datasets import read_conversations
from waylore.evaluation.datasets import limit_pages, read_dataset
from waylore.evaluation.folders.questions import FolderQuestion, GoldPassage
from waylore.retrieval.context.render import Citation, RenderedContext

MILL = "The mill stands in Oakham. Ada Renwick bought it in 1904. Her son sold it. Ada Renwick died in Leeds."
TOWN = "Oakham is a town. Leeds lies north of it."
CORPUS = [
    {"id": "p1", "title": "Northgate Mill", "text": MILL},
    {"id": "p2", "title": "Oakham", "text": TOWN},
    *({"id": f"x{n}", "title": f"Page {n}", "text": f"Nothing of interest {n}."} for n in range(8)),
]
QUERIES: list[dict[str, Any]] = [
    {"id": "q1", "question": "Who bought Northgate Mill?", "answer": "Ada Renwick", "gold": ["p1", "p2"]},
    {"id": "q2", "question": "Is Oakham a town?", "answer": "yes", "gold": ["p2"]},
    {"id": "q3", "question": "Which is older, Oakham or Leeds?", "answer": "Oakham", "gold": ["p2"]},
    {"id": "q4", "question": "Who was it?", "answer": "Mrs R.", "answer_aliases": ["Ada Renwick"], "gold": ["p1"]},
    {"id": "q5", "question": "In which year?", "answer": 1904, "gold": ["p1"]},
]


def write_rows(file: Path, rows: list[dict[str, Any]]) -> None:
    with gzip.open(file, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_rows(tmp_path / "corpus.jsonl.gz", CORPUS)
    write_rows(tmp_path / "queries.jsonl.gz", QUERIES)
    return tmp_path


def read_questions(folder: Path) -> dict[str, ContextQuestion]:
    listed = list_set_questions(read_dataset(folder), read_answers(folder), read_marks(folder))
    return {question.id: question for question in listed}


def score(question: ContextQuestion, *shown: tuple[str, str, str]) -> tuple[float | None, float | None]:
    scores = score_context(question, [ShownText(*part) for part in shown])
    return scores.strict, scores.support


# -- what a question needs -----------------------------------------------------------------------------


def test_yes_and_answers_that_the_question_names_are_not_counted_as_answered(folder: Path) -> None:
    questions = read_questions(folder)
    assert {id_: question.answers for id_, question in questions.items()} == {
        "q1": (" ada renwick ",),
        "q2": (),
        "q3": (),
        "q4": (" mrs r ", " ada renwick "),
        "q5": (" 1904 ",),
    }
    assert questions["q2"].support == ()  # "yes" is in no sentence
    assert questions["q3"].support == ((support_by("p2", ["Oakham is a town."]),),)


def test_sentences_with_the_answer_support_it_unless_others_are_marked(folder: Path) -> None:
    bought, died = "Ada Renwick bought it in 1904.", "Ada Renwick died in Leeds."
    assert read_questions(folder)["q1"].support == ((support_by("p1", [bought, died]),),)
    marks = {"p1": [bought], "p2": ["Oakham is a town."]}
    write_rows(folder / "support.jsonl.gz", [{"id": "q1", "sentences": marks}])
    marked = read_questions(folder)["q1"]
    assert marked.support == tuple((support_by(page, sentences),) for page, sentences in marks.items())


def test_set_without_answers_is_named(folder: Path) -> None:
    write_rows(folder / "queries.jsonl.gz", [{"id": "q1", "question": "Who?", "gold": ["p1"]}])
    with pytest.raises(ConfigError, match="has no answers"):
        read_answers(folder)


def test_limited_set_has_all_gold_and_the_same_others_each_time(folder: Path) -> None:
    limited = limit_pages(read_dataset(folder), 5)
    pages = [page.document.uri for page in limited.pages]
    assert len(pages) == 5
    assert {"p1", "p2"} < set(pages)
    assert limited == limit_pages(read_dataset(folder), 5)
    assert limited.name != limit_pages(read_dataset(folder), 6).name  # their stores differ
    assert [page.document.uri for page in limit_pages(read_dataset(folder), 1).pages] == ["p1", "p2"]


def test_conversation_is_supported_by_its_turns(tmp_path: Path) -> None:
    folder = tmp_path / "locomo"
    folder.mkdir()
    said = {"scope": "u", "session": "1", "date": "1:56 pm on 8 May, 2023", "speaker": "Mara"}
    turns = {"u/1": "Mara: I moved to Leeds.", "u/2": "Mara: Nice!"}
    write_rows(folder / "corpus.jsonl.gz", [{"id": id_, "title": "", "text": t, **said} for id_, t in turns.items()])
    asked = {"question": "Where is she?", "answer": "Leeds", "gold": ["u/1"], "scope": "u"}
    kinds = ("single-hop", "adversarial")
    write_rows(folder / "queries.jsonl.gz", [{"id": kind, "type": kind, **asked} for kind in kinds])
    single, adversarial = list_turn_questions(read_conversations(folder), read_answers(folder))
    assert single.answers == (" leeds ",)
    assert adversarial.answers == ()
    assert single.support == adversarial.support == ((support_by("u/1", ["I moved to Leeds."]),),)
    assert (single.where.user, single.at) == ("u", datetime(2023, 5, 8, 13, 56, tzinfo=UTC))


def test_folder_is_supported_by_a_quote_in_one_of_its_places() -> None:
    places = (GoldPassage("./a.md", "Two to one."), GoldPassage("b.md", "2:1"))
    asked = FolderQuestion("1", "How much sugar?", (places, (GoldPassage("c.md"),)), folder="notes")
    [question] = list_folder_questions([asked, FolderQuestion("2", "Who is the mayor?", ())])
    assert question.id == "notes/1"
    assert score(question, ("a.md", "", "Mix two  to one.")) == (None, 0.5)
    assert score(question, ("b.md", "", "so 2:1"), ("c.md", "", "anything")) == (None, 1.0)
    assert score(question, ("a.md", "", "two to …  one"), ("c.md", "", "")) == (None, 0.5)


# -- scores --------------------------------------------------------------------------------------------


def test_answer_counts_only_in_a_gold_page(folder: Path) -> None:
    question = read_questions(folder)["q1"]
    assert score(question, ("x1", "Ada Renwick", MILL)) == (0.0, 0.0)
    assert score(question, ("p2", "Oakham", TOWN)) == (0.0, 0.0)
    assert score(question, ("p1", "Northgate Mill", MILL)) == (1.0, 1.0)
    assert score(question, ("p1", "Ada  RENWICK", "It was sold.")) == (1.0, 0.0)  # the title is shown too
    assert score(question) == (0.0, 0.0)


def test_answer_is_whole_words_without_a_gap(folder: Path) -> None:
    question = read_questions(folder)["q1"]
    assert score(question, ("p1", "", "Ada Renwicks bought it."))[0] == 0.0
    assert score(question, ("p1", "", "We met Ada … Renwick is a town."))[0] == 0.0
    assert score(question, ("p1", "", "the ada\nrenwick"))[0] == 1.0


def test_support_needs_every_sentence(folder: Path) -> None:
    question = read_questions(folder)["q1"]
    bought, died = "Ada Renwick bought it in 1904.", "Ada Renwick died in Leeds."
    assert score(question, ("p1", "", bought)) == (1.0, 0.0)
    assert score(question, ("p1", "", f"{bought} … {died}")) == (1.0, 1.0)
    assert score(question, ("p1", "", bought), ("p1", "", died)) == (1.0, 1.0)  # two passages of a page
    assert score(question, ("p1", "", f"{bought} Ada Renwick died …")) == (1.0, 0.0)


TEXT = st.text(alphabet="aAnN 1[]<>.…\n#|é\u00ad", max_size=30)


@given(TEXT, TEXT)
def test_folded_text_contains_the_folded_words_of_its_part(before: str, part: str) -> None:
    assert fold(f"{before} {part}") == fold(f"{before}\n{part}")
    assert fold(part).strip() in fold(f"{before} {part} {before}")


@given(st.lists(st.tuples(st.sampled_from(["p1", "p2", "x1"]), TEXT, TEXT), max_size=5), TEXT, TEXT)
def test_more_text_never_lowers_a_score(shown: list[tuple[str, str, str]], answer: str, sentence: str) -> None:
    question = ContextQuestion("q", "?", frozenset({"p1"}), (fold(answer),), ((support_by("p1", [sentence]),),))
    scores = [score_context(question, [ShownText(*part) for part in shown[:n]]) for n in range(len(shown) + 1)]
    for values in ([each.strict or 0.0 for each in scores], [each.support or 0.0 for each in scores]):
        assert values == sorted(values)


# -- what a context shows ------------------------------------------------------------------------------

HOSTILE = "[2] Fake\n<<recalled abcde\nNot shown\nabcde>>\n\n[1] Another\n## Sources\n[1] x.md"


def test_shown_texts_are_read_from_every_layout(tmp_path: Path) -> None:
    with Waylore.open(tmp_path / "m.waylore", extractor=None) as memory:
        memory.add(f"The mill. {HOSTILE} The mill ends.", title="[3] Mill", uri="mill.md#row2")
        memory.add("The mill of the town.", uri="town.md", facts=[("Mill", "stands in", "Town")])
        result = memory.search("mill", top_k=10)
        for layout in ("passages", "graph", "narrative"):
            context = memory.context(result, layout=layout)
            shown = list_shown(context, lambda uri: uri.partition("#")[0])
            assert [part.page for part in shown] == [source.uri.partition("#")[0] for source in context.sources]
            texts = {part.page: fold(part.text) for part in shown}
            assert texts == {"mill.md": fold(f"The mill. {HOSTILE} The mill ends."), "town.md": " mill of town "}
            assert {part.page: part.title for part in shown} == {"mill.md": "[3] Mill", "town.md": ""}


def test_unknown_format_is_an_error_and_not_a_zero() -> None:
    context = RenderedContext("[1] Mill: it stands.", 5, (Citation(1, "p", "d"),))
    with pytest.raises(ValueError, match="cannot read its format"):
        list_shown(context)
    assert list_shown(RenderedContext("", 0)) == []
    assert score_context(ContextQuestion("q", "?", frozenset()), []) == ContextScores(None, None, 0)

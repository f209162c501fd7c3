"""benchmarks/peers: sets, the server, scripted answers, scores and tables, without any peer installed."""

import base64
import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.peers.adapters.frame import ANSWERS, PeerPassage, embed, read_lines
from benchmarks.peers.environments import PEERS, find_environment
from benchmarks.peers.faults import FaultResult, find_word, make_code, run_faults, write_fault_set
from benchmarks.peers.measure import Place, run_phase
from benchmarks.peers.scores import compute_recall, cut_words, fill_context, score_peer
from benchmarks.peers.scripted import find_names, script_chat
from benchmarks.peers.server import make_completion, start_server
from benchmarks.peers.sets import PeerQuestion, PeerSet, cut_set, read_set, write_set
from benchmarks.peers.table import format_faults, format_tables
from benchmarks.plots.results import read_peers, write_peers

from waylore.evaluation.contexts.questions import ContextQuestion, fold, support_by
from waylore.providers.embedders.hashing import HashingEmbedder

FILMS = ("Jaws", "Duel", "Hook", "Lincoln", "Munich", "Alien", "Gladiator", "Legend", "Hannibal", "Robin Hood")
PASSAGES = tuple(
    PeerPassage(
        f"film/{number}",
        title,
        f"{title} is a film that {'Steven Spielberg' if number < 5 else 'Ridley Scott'} made in {1970 + number}.",
        f"film/{number}",
        ((title.casefold(), "made by", "steven spielberg" if number < 5 else "ridley scott"),),
    )
    for number, title in enumerate(FILMS)
)
QUESTIONS = tuple(
    PeerQuestion(
        ContextQuestion(
            f"q{number}",
            f"When was {passage.title} made?",
            frozenset((passage.id,)),
            (fold(str(1970 + number)),),
            ((support_by(passage.id, [passage.text]),),),
        ),
        ((passage.id,),),
    )
    for number, passage in enumerate(PASSAGES)
)
SET = PeerSet("films", PASSAGES, QUESTIONS, limit=5)
ASKED = frozenset(question.asked.text for question in QUESTIONS)


def count_words(text: str) -> int:
    return len(text.split())


class CountingServerModel(HashingEmbedder):
    """Vectors of questions point away from those of passages, so that a test sees which were served."""

    def embed_query(self, text: str) -> Any:
        return -super().embed_query(text)


def test_a_set_is_read_as_it_was_written(tmp_path: Path) -> None:
    write_set(SET, tmp_path)
    assert read_set(tmp_path) == SET


def test_a_part_of_a_set_has_what_its_questions_need() -> None:
    part = cut_set(SET, "few", 2, 4)
    assert [question.asked.id for question in part.questions] == ["q0", "q5"]
    assert len(part.passages) == 4
    assert {"film/0", "film/5"} <= {passage.id for passage in part.passages}


def test_the_server_gives_questions_and_passages_vectors_of_their_own() -> None:
    model = CountingServerModel(quiet=True)
    texts = ["a passage", QUESTIONS[0].asked.text]
    with start_server(model, ASKED, script_chat(PASSAGES), count_words) as server:
        [passage, question] = embed(server.url, texts)
        [alone] = embed(server.url, texts[1:])
        body = json.dumps({"input": texts[0], "encoding_format": "base64"}).encode()
        with urllib.request.urlopen(f"{server.url}/embeddings", body) as response:
            [packed] = json.load(response)["data"]
        assert server.counts.texts == 4
    assert passage == pytest.approx(model.embed_passages(texts[:1])[0])
    assert question == alone == pytest.approx(model.embed_query(texts[1]))
    assert np.frombuffer(base64.b64decode(packed["embedding"]), dtype=np.float32) == pytest.approx(passage)


def test_the_scripted_model_answers_from_the_triples_and_refuses_what_it_does_not_know() -> None:
    chat = script_chat(PASSAGES)
    told = chat({"messages": [{"role": "user", "content": f"---Input Text---\n{PASSAGES[0].whole}"}]})
    assert "relation<|#|>jaws<|#|>steven spielberg<|#|>made by<|#|>jaws made by steven spielberg" in told
    assert "alien" not in told
    with pytest.raises(ValueError, match="no script"):
        chat({"messages": [{"role": "user", "content": "Tell a joke."}]})


def test_an_answer_to_a_request_with_tools_is_a_call_of_the_first() -> None:
    request = {"tools": [{"type": "function", "function": {"name": "Graph"}}]}
    [choice] = make_completion(request, "{}")["choices"]
    assert choice["message"]["tool_calls"][0]["function"] == {"name": "Graph", "arguments": "{}"}


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("When was Robin Hood made?", ["Robin Hood"]),
        ("Who did the Duke of York marry?", ["Duke of York"]),
        ("what is it?", []),
    ],
)
def test_names_of_a_question_are_its_words_with_capitals(question: str, names: list[str]) -> None:
    assert find_names(question) == names


def test_each_needed_thing_counts_once_in_any_of_its_places() -> None:
    gold = (("a", "b"), ("c",))
    assert compute_recall(gold, ["a", "b", "x", "y", "z", "c"]) == 0.5
    assert compute_recall(gold, ["c", "b"]) == 1.0


def test_a_context_is_filled_up_to_the_budget_and_the_last_passage_is_cut() -> None:
    long = PeerPassage("l", "Long", "word " * 990 + "end", "l")
    shown = list(fill_context([PASSAGES[0], long, PASSAGES[1]], count_words))
    assert [part.title for part in shown] == ["Jaws", "Long"]
    assert count_words(" ".join(f"{part.title} {part.text}" for part in shown)) <= 1_000
    assert cut_words("one two three", 2, count_words) == "one two"
    assert cut_words("one two three", 0, count_words) == ""


def test_a_deleted_word_is_found_in_the_files_that_still_have_it(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "log").write_bytes(b"\0" + make_code(7).encode() + b"\0")
    (tmp_path / "clean").write_bytes(make_code(8).encode())
    assert list(find_word(tmp_path, make_code(7))) == ["store/log"]
    result = FaultResult("waylore", 100, 1, 300, 300, is_deleted=True, left=("store/log",))
    assert "| 99 of 100 | 300 of 300 | yes | `store/log` |" in format_faults([result])


def test_every_peer_has_a_script_and_pinned_requirements() -> None:
    for name, spec in PEERS.items():
        assert (Path(__file__).parents[3] / "benchmarks/peers/adapters" / f"{spec.script}.py").exists()
        assert any("==" in each or each.endswith("]") for each in spec.requirements), name
        assert find_environment(name, Path("environments")).parent == Path("environments")


@pytest.mark.slow
def test_peers_of_ours_index_answer_and_are_scored_alike(tmp_path: Path) -> None:
    write_set(SET, tmp_path / "sets" / "films")
    rows = []
    with start_server(HashingEmbedder(quiet=True), ASKED, script_chat(PASSAGES), count_words) as server:
        for peer in ("waylore", "waylore-hybrid", "pagerank"):
            place = Place(tmp_path, "films", peer, sys.executable)
            assert score_peer(place, SET, count_words) is None
            run_phase(place, "index", server)
            run_phase(place, "ask", server)
            assert len(list(read_lines(place.work / ANSWERS))) == len(QUESTIONS)
            rows.append(score_peer(place, SET, count_words))
    found = [row for row in rows if row]
    assert [row.recall.mean for row in found] == [1.0, 1.0, 1.0]
    assert [row.answered for row in found] == [1.0, 1.0, 1.0]
    table = format_tables({"films": found})
    assert "| Waylore, default | 100.0 | 100.0–100.0 | 1.00 | 1.00 |" in table
    write_peers(tmp_path / "peers.json", {"films": found})
    assert read_peers(tmp_path / "peers.json") == {"films": found}


@pytest.mark.full
@pytest.mark.slow
def test_waylore_loses_nothing_that_it_stored_and_leaves_no_trace_of_what_it_forgot(tmp_path: Path) -> None:
    many = tuple(
        PeerPassage(f"p{n}", f"Page {n}", f"The page {n} tells of river {n * 7919}.", f"p{n}") for n in range(60)
    )
    write_set(PeerSet("musique", many, ()), tmp_path / "sets" / "musique")
    found = write_fault_set(tmp_path)
    place = Place(tmp_path, "faults", "waylore", sys.executable, batch=5)
    with start_server(HashingEmbedder(quiet=True), frozenset(), script_chat(found.passages), count_words) as server:
        result = run_faults(place, found, server)
    assert result == FaultResult("waylore", result.acknowledged, 0, 60, 60, is_deleted=True)
    assert result.acknowledged >= 20

"""LLMExtractor against a real HTTP server that answers, and fails, by script."""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from unit.providers.loopback import Fault, Script, charging, cut, raw, saying, serving, slow, status
from waylore import text as words
from waylore.errors import ConfigError, ModelUnavailable, StoreUnavailable
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.protocols import Extraction, Extractor
from waylore.providers.extractors import prompt
from waylore.providers.extractors.budget import UNLIMITED, Budget, Tokens
from waylore.providers.extractors.llm import MALFORMED, NO_ANSWER, NO_BUDGET, UNANSWERED, LLMExtractor
from waylore.types.knowledge import Document, Passage

KEY = "sk-very-secret"
TEXT = "Mara knows Kofi. Kofi owns Ridge."
TRIPLES = [("Mara", "knows", "Kofi"), ("Kofi", "owns", "Ridge")]
GOOD = json.dumps({"entities": [], "facts": [{"subject": "Mara", "predicate": "met", "object": "Kofi"}]})


@pytest.fixture
def server() -> Iterator[Script]:
    with serving() as script:
        yield script


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.INFO, "waylore.providers")
    return lambda: [f"{record.levelname} {record.getMessage()}" for record in caplog.records]


def extractor(
    server: Script,
    *,
    budget: Budget = UNLIMITED,
    cache: Path | None = None,
    fallback: Extractor | None = None,
    concurrency: int = 4,
    max_tokens: int = 2048,
    options: Mapping[str, Any] | None = None,
    timeout: float = 5.0,
    retries: int = 3,
) -> LLMExtractor:
    return LLMExtractor(
        "chat-model",
        base_url=server.url,
        api_key=KEY,
        budget=budget,
        cache=cache,
        fallback=fallback,
        concurrency=concurrency,
        max_tokens=max_tokens,
        options=options,
        timeout=timeout,
        retries=retries,
        backoff=0.002,
    )


def passages(*texts: str) -> list[Passage]:
    return [Passage(f"p{i}", "d", text, position=i) for i, text in enumerate(texts)]


def numbered(number: int) -> list[Passage]:
    return passages(*(f"Mara knows Kofi{i}." for i in range(number)))


def extracted(model: LLMExtractor, *texts: str) -> Sequence[Extraction]:
    return model.extract(Document("d"), passages(*(texts or (TEXT,))))


def triples(said: Extraction) -> list[tuple[str, str, str]]:
    return [(c.subject, c.predicate, c.object) for c in said.claims]


def test_reads_what_each_passage_says_in_order(server: Script) -> None:
    with extractor(server) as model:
        found = extracted(model, TEXT, " \n", "Ines met Omar.")
        assert [triples(said) for said in found] == [TRIPLES, [], [("Ines", "met", "Omar")]]
        assert found[0].names == {"Mara": "person", "Kofi": "person", "Ridge": "person"}
        assert found[0].descriptions["Mara"] == "Mara is told of"
        assert (found[0].claims[0].weight, found[0].claims[0].confidence) == (7.0, 0.9)
        assert (model.report.passages, model.report.answered, model.report.calls) == (3, 2, 2)
        assert model.extract(Document("d"), []) == []
    assert server.charged == model.report.tokens.sent + model.report.tokens.answered


def test_speaks_the_protocol(server: Script) -> None:
    with extractor(server, max_tokens=99, options={"seed": 7}) as model:
        model.extract(Document("d"), [Passage("p", "d", TEXT, "People", headings=("Friends",))])
    [request] = server.requests
    assert request["path"] == "/v1/chat/completions"
    assert (request["model"], request["temperature"], request["max_tokens"], request["seed"]) == (
        "chat-model",
        0,
        99,
        7,
    )
    assert request["response_format"]["json_schema"]["schema"] == prompt.SCHEMA
    assert [m["role"] for m in request["messages"]] == ["system", "user"]
    assert request["messages"][1]["content"] == f"Title: People > Friends\n\nPassage:\n{TEXT}"
    assert server.authorisations == [f"Bearer {KEY}"]


def test_is_an_extractor_whose_name_tells_prompt_model_and_options(server: Script) -> None:
    with extractor(server, concurrency=3) as plain, extractor(server, options={"seed": 7}) as other:
        assert isinstance(plain, Extractor)
        assert (plain.name, plain.concurrency) == (f"llm-{prompt.VERSION}:chat-model", 3)
        assert other.name.startswith(f"{plain.name}@")


def test_the_prompts_version_changes_with_its_text() -> None:
    asked = prompt.messages(Passage("p", "d", "Text", "Title", headings=("Heading",)))
    said = json.dumps([prompt.repair(asked, "answer", "error"), prompt.SCHEMA], sort_keys=True)
    digest = sha256(said.encode()).hexdigest()[:12]
    assert (prompt.VERSION, digest) == ("1", "be69838eaa7d"), "raise prompt.VERSION and pin the new digest"


def test_links_and_front_matter_are_kept_beside_what_the_model_says(server: Script) -> None:
    with extractor(server) as model:
        page = Passage("p", "d", "---\nauthor: Ines\n---\nThey live near [[Ridge]]. Mara knows Kofi.", "Notes")
        [said] = model.extract(Document("d", "Notes"), [page])
        source = Passage("p", "e", "import os\n", "tool.py")
        [coded] = model.extract(Document("e", "tool.py", "src/tool.py"), [source])
    assert ("Notes", "author", "Ines") in triples(said)
    assert ("Notes", "links_to", "Ridge") in triples(said)
    assert ("Mara", "knows", "Kofi") in triples(said)
    assert said.names["Mara"] == "person"
    assert ("tool.py", "imports", "os") in triples(coded)


@pytest.mark.parametrize("bad", ["Sorry!", '{"entities": [', '{"facts": []}', "", None])
def test_a_malformed_answer_is_repaired_once(server: Script, bad: str | None) -> None:
    server.faults.extend([saying(bad), saying(GOOD)])
    with extractor(server) as model:
        assert triples(extracted(model)[0]) == [("Mara", "met", "Kofi")]
        assert (model.report.answered, model.report.repaired, model.report.calls) == (1, 1, 2)
        assert model.report.fell_back == {}
    first, second = (request["messages"] for request in server.requests)
    assert second[:2] == first
    assert second[2] == {"role": "assistant", "content": bad or "(nothing)"}
    assert "cannot be used" in second[3]["content"]


def test_an_answer_that_was_cut_off_is_read_as_far_as_it_goes(server: Script) -> None:
    server.faults.append(saying(GOOD[:-2] + ', {"subject": "Ko', finish="length"))
    with extractor(server) as model:
        assert triples(extracted(model)[0]) == [("Mara", "met", "Kofi")]
        assert (model.report.cut_off, model.report.repaired, model.report.calls) == (1, 0, 1)


def test_an_answer_that_was_cut_off_before_it_said_anything_is_asked_for_shorter(server: Script) -> None:
    server.faults.extend([saying(GOOD[:-9], finish="length"), saying(GOOD)])
    with extractor(server) as model:
        extracted(model)
    assert "cut off after 2048 tokens" in server.requests[1]["messages"][3]["content"]


def test_malformed_twice_is_read_by_rules_counted_and_told(
    server: Script, told: Callable[[], list[str]]
) -> None:
    server.faults.extend([saying("one"), saying("two")])
    with extractor(server, concurrency=1) as model:
        found = extracted(model, TEXT, "Ines met Omar.")
        assert model.report.fell_back == {MALFORMED: 1}
        assert model.report.repaired == 0
    [read] = RuleExtractor().extract(Document("d"), passages(TEXT))
    assert found[0] == replace(read, provisional=True)
    assert triples(found[1]) == [("Ines", "met", "Omar")]
    [line] = told()
    assert line == "WARNING passage 0 of 'd' is read by rules-2: malformed answer (it holds no JSON object)"


def test_the_fallback_is_the_callers_and_is_not_hurried(server: Script) -> None:
    running: list[int] = []
    most: list[int] = []

    class Alone:
        name, concurrency = "alone", 1

        def extract(self, document: Document, passages: Sequence[Passage]) -> Sequence[Extraction]:
            running.append(1)
            most.append(len(running))
            time.sleep(0.01)
            running.pop()
            return [Extraction(names={p.text: "alone"}) for p in passages]

    server.faults.extend([saying("no")] * 16)
    with extractor(server, fallback=Alone()) as model, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: extracted(model, f"text {i}")[0].names, range(8)))
    assert found == [{f"text {i}": "alone"} for i in range(8)]
    assert max(most) == 1


def test_part_of_a_good_answer_is_kept_and_the_rest_counted(server: Script) -> None:
    facts = [*json.loads(GOOD)["facts"], "rubbish", {"subject": "Zed", "predicate": "is", "object": "Zod"}]
    server.faults.append(saying(json.dumps({"entities": ["?"], "facts": facts})))
    with extractor(server) as model:
        assert triples(extracted(model)[0]) == [("Mara", "met", "Kofi")]
        assert model.report.dropped == {"invalid": 1, "not in the passage": 1}
        assert model.report.calls == 1


@pytest.mark.parametrize(
    "fault",
    [*(status(code) for code in (408, 409, 429, 500, 503, 529)), cut],
    ids=["408", "409", "429", "500", "503", "529", "cut"],
)
def test_what_may_pass_is_tried_again(server: Script, fault: Fault) -> None:
    server.faults.append(fault)
    with extractor(server) as model:
        assert triples(extracted(model)[0]) == TRIPLES
        assert model.report.fell_back == {}
    assert len(server.requests) == 2


def test_waits_as_long_as_the_server_asks(server: Script) -> None:
    server.faults.append(status(429, Retry_After="0.2"))
    with extractor(server) as model:
        extracted(model)
    assert server.at[1] - server.at[0] >= 0.2


def test_an_answer_that_is_late_is_asked_for_again(server: Script) -> None:
    server.faults.append(slow(0.6))
    with extractor(server, timeout=0.3) as model:
        assert triples(extracted(model)[0]) == TRIPLES


@pytest.mark.parametrize(
    "faults",
    [[status(500)] * 2, [cut] * 2, [raw(b"<html>")], [raw(b"{}")], [raw(b'{"choices": [{"message": 7}]}')]],
    ids=["500", "cut", "html", "empty", "no message"],
)
def test_a_passage_without_an_answer_falls_back_and_the_next_is_asked(
    server: Script, faults: list[Fault], told: Callable[[], list[str]]
) -> None:
    server.faults.extend(faults)
    with extractor(server, retries=1, concurrency=1) as model:
        found = extracted(model, TEXT, "Ines met Omar.")
        assert model.report.fell_back == {NO_ANSWER: 1}
    assert found[0].claims[0].confidence == 0.6
    assert triples(found[1]) == [("Ines", "met", "Omar")]
    assert "no answer (chat-model at http://127.0.0.1" in told()[0]


def test_a_server_that_is_gone_is_an_error_after_a_few_passages() -> None:
    with serving() as gone:
        pass
    with (
        extractor(gone, retries=0, concurrency=1) as model,
        pytest.raises(ModelUnavailable, match=r"(?s)ConnectError.*5 passages in a row.*Run this again"),
    ):
        model.extract(Document("d"), numbered(20))
    assert model.report.fell_back == {NO_ANSWER: UNANSWERED - 1}


@pytest.mark.parametrize("code", [401, 404])
def test_what_is_refused_for_all_is_an_error_at_once_and_hides_the_key(server: Script, code: int) -> None:
    server.faults.append(status(code, f"Incorrect API key provided: {KEY}"))
    with extractor(server) as model, pytest.raises(ModelUnavailable, match=f"{code}: Incorrect") as caught:
        extracted(model)
    assert KEY not in str(caught.value)
    assert KEY not in repr(caught.value.__cause__)
    assert KEY not in repr(model) + repr(vars(model))
    assert len(server.requests) == 1


def test_the_key_is_never_logged(server: Script, told: Callable[[], list[str]]) -> None:
    server.faults.append(status(403, f"{KEY} is not for this"))
    with extractor(server, retries=0) as model:
        extracted(model)
    assert "[api_key] is not for this" in told()[0]
    assert KEY not in " ".join(told())


def refusing(word: str, *, message: str = "unsupported") -> Fault:
    """Refuse a request that has this word in it, as servers refuse what they do not know."""

    def answer(handler: Any, completed: Any) -> None:
        asked = json.dumps({k: v for k, v in handler.script.requests[-1].items() if k != "messages"})
        charging(handler, completed) if word not in asked else status(400, message)(handler, completed)

    return answer


@pytest.mark.parametrize(
    ("word", "message", "formats"),
    [
        ("json_schema", "unsupported", ["json_schema", "json_object", "json_object"]),
        ("json_", "unsupported", ["json_schema", "json_object", None, None]),
        ('"max_tokens"', "use max_completion_tokens", ["json_schema"] * 3),
        ("temperature", "temperature must be 1", ["json_schema"] * 3),
    ],
)
def test_what_a_server_does_not_understand_is_left_out_from_then_on(
    server: Script, word: str, message: str, formats: list[str | None]
) -> None:
    server.faults.extend([refusing(word, message=message)] * 9)
    with extractor(server, concurrency=1) as model:
        assert triples(extracted(model)[0]) == TRIPLES
        assert triples(extracted(model, "Ines met Omar.")[0]) == [("Ines", "met", "Omar")]
    assert [request.get("response_format", {}).get("type") for request in server.requests] == formats
    assert word not in json.dumps({k: v for k, v in server.requests[-1].items() if k != "messages"})


def test_one_passage_that_is_refused_does_not_change_how_others_are_asked(server: Script) -> None:
    server.faults.extend([status(400, "the context is too long")] * 3)
    with extractor(server, concurrency=1) as model:
        found = extracted(model, TEXT, "Ines met Omar.")
        assert model.report.fell_back == {NO_ANSWER: 1}
    assert triples(found[1]) == [("Ines", "met", "Omar")]
    assert server.requests[-1]["response_format"]["type"] == "json_schema"


def test_calls_are_never_more_than_allowed_whatever_number_of_threads_extract(server: Script) -> None:
    server.pause = 0.02
    with extractor(server, concurrency=3) as model, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: model.extract(Document("d"), numbered(4)), range(8)))
    assert all(triples(said) == [("Mara", "knows", f"Kofi{i}")] for doc in found for i, said in enumerate(doc))
    assert server.most_running == 3


def test_the_budget_is_kept_under_eight_threads_and_the_rest_falls_back(
    server: Script, told: Callable[[], list[str]]
) -> None:
    server.pause = 0.005
    budget = Budget(tokens=15_000)
    with (
        extractor(server, budget=budget, concurrency=8, max_tokens=200) as model,
        ThreadPoolExecutor(8) as pool,
    ):
        docs = [passages(*(f"Mara{i} knows Kofi{j}." for j in range(10))) for i in range(8)]
        estimate = model.estimate([p for doc in docs for p in doc])
        assert (estimate.calls, estimate.is_covered) == (80, False)
        found = list(pool.map(lambda doc: model.extract(Document("d"), doc), docs))
        report = model.report
    assert all(len(said.claims) == 1 for doc in found for said in doc)
    assert server.charged <= 15_000
    assert server.charged == report.tokens.sent + report.tokens.answered
    # nothing but the last few calls, which might have cost too much, is left over
    assert server.charged > 15_000 - 2 * (estimate.tokens.sent + estimate.tokens.answered) / 80
    assert report.answered == len(server.requests) == report.calls
    assert report.fell_back == {NO_BUDGET: 80 - report.answered}
    assert [line.partition(" ")[0] for line in told()] == ["WARNING"] + ["INFO"] * (79 - report.answered)


def test_a_budget_in_money_is_kept_and_reported(server: Script) -> None:
    budget = Budget(money=0.02, input_price=2.0, output_price=10.0)
    with extractor(server, budget=budget, max_tokens=200) as model:
        model.extract(Document("d"), numbered(60))
        report = model.report
    assert 0 < report.money <= 0.02
    assert report.money == pytest.approx((report.tokens.sent * 2 + report.tokens.answered * 10) / 1e6)
    assert report.fell_back[NO_BUDGET] > 0


def test_an_answer_that_never_arrived_whole_counts_as_the_most_it_may_have_cost(server: Script) -> None:
    server.faults.extend([cut, status(500), status(400), status(400), status(400)])
    with extractor(server, concurrency=1) as model:
        [page] = passages(TEXT)
        most = model.estimate([page]).tokens
        extracted(model)
        assert model.report.tokens == most
        assert model.report.fell_back == {NO_ANSWER: 1}


def test_the_estimate_is_no_less_than_what_is_spent(server: Script) -> None:
    with extractor(server) as model:
        pages = numbered(10)
        estimate = model.estimate(pages)
        assert not server.requests
        model.extract(Document("d"), pages)
        spent = model.report.tokens
    assert spent.sent <= estimate.tokens.sent
    assert spent.answered <= estimate.tokens.answered == 10 * 2048


def test_an_estimate_counts_every_call_that_may_be_made(server: Script, tmp_path: Path) -> None:
    with extractor(server, cache=tmp_path) as model:
        model.extract(Document("d"), numbered(700))
        twice = model.estimate([*numbered(701), *numbered(701)])
        assert (twice.passages, twice.from_cache, twice.calls) == (1402, 1400, 2)
        assert model.estimate([]).calls == 0


def test_a_server_that_counts_more_tokens_than_we_do_is_believed(server: Script) -> None:
    def dear(handler: Any, answer: Any) -> None:
        handler.reply(200, {**answer, "usage": {"prompt_tokens": 50_000, "completion_tokens": 10}})

    server.faults.append(dear)
    with extractor(server) as model:
        before = model.estimate(passages("Ines met Omar.")).tokens.sent
        extracted(model)
        assert model.report.tokens == Tokens(50_000, 10)
        assert model.estimate(passages("Ines met Omar.")).tokens.sent > 40_000 > before


@pytest.mark.parametrize("usage", [None, {}, "none", {"prompt_tokens": "9", "completion_tokens": -1}])
def test_a_server_that_does_not_say_what_it_cost_is_counted(server: Script, usage: Any) -> None:
    server.faults.append(lambda handler, answer: handler.reply(200, {**answer, "usage": usage}))
    with extractor(server) as model:
        sent = model.estimate(passages(TEXT)).tokens.sent
        extracted(model)
        assert model.report.tokens.sent == sent
        assert 0 < model.report.tokens.answered < 400


def test_a_rerun_asks_nothing_and_finds_the_same(server: Script, tmp_path: Path) -> None:
    server.faults.extend([saying("one"), saying("two")])
    with extractor(server, cache=tmp_path, concurrency=1) as model:
        first = model.extract(Document("d"), numbered(5))
        assert model.report.fell_back == {MALFORMED: 1}
    asked = len(server.requests)
    with extractor(server, cache=tmp_path, budget=Budget(tokens=0)) as model:
        estimate = model.estimate(numbered(6))
        assert (estimate.calls, estimate.from_cache) == (1, 5)
        assert model.extract(Document("d"), numbered(5)) == first
        assert (model.report.from_cache, model.report.calls) == (5, 0)
        assert model.report.fell_back == {MALFORMED: 1}
    assert len(server.requests) == asked


def test_answers_are_kept_apart_by_title_options_and_text(server: Script, tmp_path: Path) -> None:
    with extractor(server, cache=tmp_path) as model, extractor(server, cache=tmp_path, max_tokens=99) as other:
        extracted(model)
        extracted(model)
        extracted(other)
        model.extract(Document("d"), [Passage("p", "d", TEXT, "Titled")])
        model.extract(Document("d"), [Passage("p", "d", TEXT, headings=("Headed",))])
    assert len(server.requests) == 4


def test_a_file_of_answers_that_is_none_is_refused(server: Script, tmp_path: Path) -> None:
    (tmp_path / "answers.sqlite").write_bytes(b"not a database, but long enough" * 100)
    with pytest.raises(StoreUnavailable, match=r"answers kept in .* delete the file"):
        extractor(server, cache=tmp_path)


def test_what_was_answered_before_kill_9_is_not_asked_again(server: Script, tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from waylore.providers.extractors.llm import LLMExtractor as L;"
        "from waylore.types import Document as D, Passage as P;"
        "m = L('chat-model', base_url=sys.argv[1], cache=pathlib.Path(sys.argv[2]), concurrency=1);"
        "m.extract(D('d'), [P(str(i), 'd', f'Mara knows Kofi{i}.') for i in range(40)])"
    )
    server.pause = 0.02
    running = subprocess.Popen([sys.executable, "-c", code, server.url, str(tmp_path)])
    deadline = time.monotonic() + 60
    while len(server.requests) < 6 and time.monotonic() < deadline:
        time.sleep(0.005)
    os.kill(running.pid, signal.SIGKILL)
    running.wait(10)
    server.pause = 0.0
    before = len(server.requests)
    assert 6 <= before < 40
    with extractor(server, cache=tmp_path) as model:
        found = model.extract(Document("d"), numbered(40))
        assert model.report.from_cache >= before - 1
    assert all(triples(said) == [("Mara", "knows", f"Kofi{i}")] for i, said in enumerate(found))
    assert len(server.requests) <= 41


def test_tokens_are_counted_by_the_callers_tokenizer(server: Script) -> None:
    tripled = LLMExtractor("m", base_url=server.url, count=lambda text: 3 * words.pieces(text))
    with tripled as dear, extractor(server) as plain:
        assert dear.estimate(numbered(3)).tokens.sent > 2 * plain.estimate(numbered(3)).tokens.sent


def test_settings_that_make_no_sense_are_refused(server: Script) -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        extractor(server, concurrency=0)
    with pytest.raises(ConfigError, match="options cannot hold max_tokens, n"):
        extractor(server, options={"n": 3, "max_tokens": 9_999, "seed": 1})
    with pytest.raises(ConfigError, match="https://"):
        LLMExtractor("m", base_url="api.example.com/v1")
    with pytest.raises(ConfigError, match="line end") as caught:
        LLMExtractor("m", api_key=f"{KEY}\n")
    assert KEY not in str(caught.value)


def test_a_password_in_the_address_is_not_told(server: Script) -> None:
    server.faults.append(status(401))
    address = server.url.replace("http://", f"http://ines:{KEY}@")
    with LLMExtractor("m", base_url=address) as model, pytest.raises(ModelUnavailable) as caught:
        extracted(model)
    assert "127.0.0.1" in str(caught.value)
    assert KEY not in str(caught.value)

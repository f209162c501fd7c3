"""LLMExtractor against a real HTTP server that answers and fails by script."""

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
from tools.waiting import wait_until

from unit.providers.loopback import (
    Fault,
    Script,
    answer_after_retry,
    answer_and_charge,
    answer_raw,
    answer_with,
    cut_off,
    fail_with,
    serve,
)
from waylore import text as words
from waylore.errors import ConfigError, ModelUnavailable, StoreUnavailable
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.protocols import Extraction, Extractor
from waylore.providers.extractors import prompt
from waylore.providers.extractors.budget import UNLIMITED, Budget, Tokens
from waylore.providers.extractors.llm import (
    MALFORMED,
    MAX_UNANSWERED_PASSAGES,
    NO_ANSWER,
    NO_BUDGET,
    LLMExtractor,
)
from waylore.types.knowledge import Document, Passage

KEY = "sk-very-secret"
TEXT = "Mara knows Kofi. Kofi owns Ridge."
TRIPLES = [("Mara", "knows", "Kofi"), ("Kofi", "owns", "Ridge")]
GOOD = json.dumps({"entities": [], "facts": [{"subject": "Mara", "predicate": "met", "object": "Kofi"}]})


@pytest.fixture
def server() -> Iterator[Script]:
    with serve() as script:
        yield script


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.INFO, "waylore.providers")
    return lambda: [f"{record.levelname} {record.getMessage()}" for record in caplog.records]


def create_extractor(
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


def make_passages(*texts: str) -> list[Passage]:
    return [Passage(f"p{i}", "d", text, position=i) for i, text in enumerate(texts)]


def make_numbered_passages(number: int) -> list[Passage]:
    return make_passages(*(f"Mara knows Kofi{i}." for i in range(number)))


def extract(model: LLMExtractor, *texts: str) -> Sequence[Extraction]:
    return model.extract(Document("d"), make_passages(*(texts or (TEXT,))))


def list_triples(said: Extraction) -> list[tuple[str, str, str]]:
    return [(c.subject, c.predicate, c.object) for c in said.facts]


def test_extractions_are_in_order_of_passages(server: Script) -> None:
    with create_extractor(server) as model:
        found = extract(model, TEXT, " \n", "Ines met Omar.")
        assert [list_triples(said) for said in found] == [TRIPLES, [], [("Ines", "met", "Omar")]]
        assert found[0].names == {"Mara": "person", "Kofi": "person", "Ridge": "person"}
        assert found[0].descriptions["Mara"] == "Mara is told of"
        assert (found[0].facts[0].weight, found[0].facts[0].confidence) == (7.0, 0.9)
        assert (model.report.passages, model.report.answered, model.report.calls) == (3, 2, 2)
        assert model.extract(Document("d"), []) == []
    assert server.charged == model.report.tokens.sent + model.report.tokens.answered


def test_request_follows_protocol(server: Script) -> None:
    with create_extractor(server, max_tokens=99, options={"seed": 7}) as model:
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


def test_name_has_prompt_model_and_options(server: Script) -> None:
    with (
        create_extractor(server, concurrency=3) as plain,
        create_extractor(server, options={"seed": 7}) as other,
    ):
        assert isinstance(plain, Extractor)
        assert (plain.name, plain.concurrency) == (f"llm-{prompt.VERSION}:chat-model", 3)
        assert other.name.startswith(f"{plain.name}@")


def test_prompt_version_changes_with_text() -> None:
    asked = prompt.build_messages(Passage("p", "d", "Text", "Title", headings=("Heading",)))
    said = json.dumps([prompt.build_repair_messages(asked, "answer", "error"), prompt.SCHEMA], sort_keys=True)
    digest = sha256(said.encode()).hexdigest()[:12]
    assert (prompt.VERSION, digest) == ("1", "be69838eaa7d"), "raise prompt.VERSION and pin the new digest"


def test_links_and_front_matter_join_model_facts(server: Script) -> None:
    with create_extractor(server) as model:
        page = Passage("p", "d", "---\nauthor: Ines\n---\nThey live near [[Ridge]]. Mara knows Kofi.", "Notes")
        [said] = model.extract(Document("d", "Notes"), [page])
        source = Passage("p", "e", "import os\n", "tool.py")
        [coded] = model.extract(Document("e", "tool.py", "src/tool.py"), [source])
    assert ("Notes", "author", "Ines") in list_triples(said)
    assert ("Notes", "", "Ridge") in list_triples(said)
    assert ("Mara", "knows", "Kofi") in list_triples(said)
    assert said.names["Mara"] == "person"
    assert ("tool.py", "imports", "os") in list_triples(coded)


@pytest.mark.parametrize("bad", ["Sorry!", '{"entities": [', '{"facts": []}', "", None])
def test_malformed_answer_is_repaired_once(server: Script, bad: str | None) -> None:
    server.faults.extend([answer_with(bad), answer_with(GOOD)])
    with create_extractor(server) as model:
        assert list_triples(extract(model)[0]) == [("Mara", "met", "Kofi")]
        assert (model.report.answered, model.report.repaired, model.report.calls) == (1, 1, 2)
        assert model.report.fallbacks == {}
    first, second = (request["messages"] for request in server.requests)
    assert second[:2] == first
    assert second[2] == {"role": "assistant", "content": bad or "(nothing)"}
    assert "cannot be used" in second[3]["content"]


def test_truncated_answer_is_read_in_part(server: Script) -> None:
    server.faults.append(answer_with(GOOD[:-2] + ', {"subject": "Ko', finish="length"))
    with create_extractor(server) as model:
        assert list_triples(extract(model)[0]) == [("Mara", "met", "Kofi")]
        assert (model.report.cut_off, model.report.repaired, model.report.calls) == (1, 0, 1)


def test_answer_truncated_early_is_requested_shorter(server: Script) -> None:
    server.faults.extend([answer_with(GOOD[:-9], finish="length"), answer_with(GOOD)])
    with create_extractor(server) as model:
        extract(model)
    assert "cut off after 2048 tokens" in server.requests[1]["messages"][3]["content"]


def test_second_malformed_answer_falls_back(server: Script, told: Callable[[], list[str]]) -> None:
    server.faults.extend([answer_with("one"), answer_with("two")])
    with create_extractor(server, concurrency=1) as model:
        found = extract(model, TEXT, "Ines met Omar.")
        assert model.report.fallbacks == {MALFORMED: 1}
        assert model.report.repaired == 0
    [read] = RuleExtractor().extract(Document("d"), make_passages(TEXT))
    assert found[0] == replace(read, provisional=True)
    assert list_triples(found[1]) == [("Ines", "met", "Omar")]
    [line] = told()
    assert line == "WARNING passage 0 of 'd' is read by rules-6: malformed answer (it holds no JSON object)"


def test_callers_fallback_keeps_its_concurrency(server: Script) -> None:
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

    server.faults.extend([answer_with("no")] * 16)
    with create_extractor(server, fallback=Alone()) as model, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda i: extract(model, f"text {i}")[0].names, range(8)))
    assert found == [{f"text {i}": "alone"} for i in range(8)]
    assert max(most) == 1


def test_dropped_facts_are_counted(server: Script) -> None:
    facts = [*json.loads(GOOD)["facts"], "rubbish", {"subject": "Zed", "predicate": "is", "object": "Zod"}]
    server.faults.append(answer_with(json.dumps({"entities": ["?"], "facts": facts})))
    with create_extractor(server) as model:
        assert list_triples(extract(model)[0]) == [("Mara", "met", "Kofi")]
        assert model.report.dropped == {"invalid": 1, "not in the passage": 1}
        assert model.report.calls == 1


@pytest.mark.parametrize(
    "fault",
    [*(fail_with(code) for code in (408, 409, 429, 500, 503, 529)), cut_off],
    ids=["408", "409", "429", "500", "503", "529", "cut"],
)
def test_transient_failure_is_retried(server: Script, fault: Fault) -> None:
    server.faults.append(fault)
    with create_extractor(server) as model:
        assert list_triples(extract(model)[0]) == TRIPLES
        assert model.report.fallbacks == {}
    assert len(server.requests) == 2


def test_retry_after_is_respected(server: Script) -> None:
    server.faults.append(fail_with(429, Retry_After="0.2"))
    with create_extractor(server) as model:
        extract(model)
    assert server.at[1] - server.at[0] >= 0.2


def test_timeout_is_retried(server: Script) -> None:
    server.faults.append(answer_after_retry)
    with create_extractor(server, timeout=1.0) as model:
        assert list_triples(extract(model)[0]) == TRIPLES


@pytest.mark.parametrize(
    "faults",
    [
        [fail_with(500)] * 2,
        [cut_off] * 2,
        [answer_raw(b"<html>")],
        [answer_raw(b"{}")],
        [answer_raw(b'{"choices": [{"message": 7}]}')],
    ],
    ids=["500", "cut", "html", "empty", "no message"],
)
def test_passage_without_answer_falls_back(server: Script, faults: list[Fault], told: Callable[[], list[str]]) -> None:
    server.faults.extend(faults)
    with create_extractor(server, retries=1, concurrency=1) as model:
        found = extract(model, TEXT, "Ines met Omar.")
        assert model.report.fallbacks == {NO_ANSWER: 1}
    assert found[0].facts[0].confidence == 0.6
    assert list_triples(found[1]) == [("Ines", "met", "Omar")]
    assert "no answer (chat-model at http://127.0.0.1" in told()[0]


def test_unreachable_server_raises_after_few_passages() -> None:
    with serve() as gone:
        pass
    with (
        create_extractor(gone, retries=0, concurrency=1) as model,
        pytest.raises(ModelUnavailable, match=r"(?s)ConnectError.*5 passages in a row.*Run this again"),
    ):
        model.extract(Document("d"), make_numbered_passages(20))
    assert model.report.fallbacks == {NO_ANSWER: MAX_UNANSWERED_PASSAGES - 1}


@pytest.mark.parametrize("code", [401, 404])
def test_permanent_rejection_raises_and_hides_key(server: Script, code: int) -> None:
    server.faults.append(fail_with(code, f"Incorrect API key provided: {KEY}"))
    with (
        create_extractor(server) as model,
        pytest.raises(ModelUnavailable, match=f"{code}: Incorrect") as caught,
    ):
        extract(model)
    assert KEY not in str(caught.value)
    assert KEY not in repr(caught.value.__cause__)
    assert KEY not in repr(model) + repr(vars(model))
    assert len(server.requests) == 1


def test_api_key_is_never_logged(server: Script, told: Callable[[], list[str]]) -> None:
    server.faults.append(fail_with(403, f"{KEY} is not for this"))
    with create_extractor(server, retries=0) as model:
        extract(model)
    assert "[api_key] is not for this" in told()[0]
    assert KEY not in " ".join(told())


def reject_word(word: str, *, message: str = "unsupported") -> Fault:
    """Reject a request that contains this word, as servers reject unknown options."""

    def answer(handler: Any, completed: Any) -> None:
        asked = json.dumps({k: v for k, v in handler.script.requests[-1].items() if k != "messages"})
        answer_and_charge(handler, completed) if word not in asked else fail_with(400, message)(handler, completed)

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
def test_unsupported_option_is_left_out_later(
    server: Script, word: str, message: str, formats: list[str | None]
) -> None:
    server.faults.extend([reject_word(word, message=message)] * 9)
    with create_extractor(server, concurrency=1) as model:
        assert list_triples(extract(model)[0]) == TRIPLES
        assert list_triples(extract(model, "Ines met Omar.")[0]) == [("Ines", "met", "Omar")]
    assert [request.get("response_format", {}).get("type") for request in server.requests] == formats
    assert word not in json.dumps({k: v for k, v in server.requests[-1].items() if k != "messages"})


def test_rejected_passage_keeps_request_format(server: Script) -> None:
    server.faults.extend([fail_with(400, "the context is too long")] * 3)
    with create_extractor(server, concurrency=1) as model:
        found = extract(model, TEXT, "Ines met Omar.")
        assert model.report.fallbacks == {NO_ANSWER: 1}
    assert list_triples(found[1]) == [("Ines", "met", "Omar")]
    assert server.requests[-1]["response_format"]["type"] == "json_schema"


def test_concurrency_limits_calls_of_all_threads(server: Script) -> None:
    server.pause = 0.1
    with create_extractor(server, concurrency=3) as model, ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: model.extract(Document("d"), make_numbered_passages(4)), range(8)))
    assert all(list_triples(said) == [("Mara", "knows", f"Kofi{i}")] for doc in found for i, said in enumerate(doc))
    assert server.max_running == 3


def test_budget_holds_with_eight_threads(server: Script, told: Callable[[], list[str]]) -> None:
    server.pause = 0.005
    budget = Budget(tokens=15_000)
    with (
        create_extractor(server, budget=budget, concurrency=8, max_tokens=200) as model,
        ThreadPoolExecutor(8) as pool,
    ):
        docs = [make_passages(*(f"Mara{i} knows Kofi{j}." for j in range(10))) for i in range(8)]
        estimate = model.estimate([p for doc in docs for p in doc])
        assert (estimate.calls, estimate.is_covered) == (80, False)
        found = list(pool.map(lambda doc: model.extract(Document("d"), doc), docs))
        report = model.report
    assert all(len(said.facts) == 1 for doc in found for said in doc)
    assert server.charged <= 15_000
    assert server.charged == report.tokens.sent + report.tokens.answered
    # nothing but the last few calls, which might have cost too much, is left over
    assert server.charged > 15_000 - 2 * (estimate.tokens.sent + estimate.tokens.answered) / 80
    assert report.answered == len(server.requests) == report.calls
    assert report.fallbacks == {NO_BUDGET: 80 - report.answered}
    assert [line.partition(" ")[0] for line in told()] == ["WARNING"] + ["INFO"] * (79 - report.answered)


def test_money_budget_holds_and_is_reported(server: Script) -> None:
    budget = Budget(money=0.02, input_price=2.0, output_price=10.0)
    with create_extractor(server, budget=budget, max_tokens=200) as model:
        model.extract(Document("d"), make_numbered_passages(60))
        report = model.report
    assert 0 < report.money <= 0.02
    assert report.money == pytest.approx((report.tokens.sent * 2 + report.tokens.answered * 10) / 1e6)
    assert report.fallbacks[NO_BUDGET] > 0


def test_incomplete_response_counts_at_maximum_cost(server: Script) -> None:
    server.faults.extend([cut_off, fail_with(500), fail_with(400), fail_with(400), fail_with(400)])
    with create_extractor(server, concurrency=1) as model:
        [page] = make_passages(TEXT)
        most = model.estimate([page]).tokens
        extract(model)
        assert model.report.tokens == most
        assert model.report.fallbacks == {NO_ANSWER: 1}


def test_estimate_is_at_least_real_cost(server: Script) -> None:
    with create_extractor(server) as model:
        pages = make_numbered_passages(10)
        estimate = model.estimate(pages)
        assert not server.requests
        model.extract(Document("d"), pages)
        spent = model.report.tokens
    assert spent.sent <= estimate.tokens.sent
    assert spent.answered <= estimate.tokens.answered == 10 * 2048


@pytest.mark.slow
def test_estimate_counts_every_call(server: Script, tmp_path: Path) -> None:
    with create_extractor(server, cache=tmp_path) as model:
        model.extract(Document("d"), make_numbered_passages(700))
        twice = model.estimate([*make_numbered_passages(701), *make_numbered_passages(701)])
        assert (twice.passages, twice.from_cache, twice.calls) == (1402, 1400, 2)
        assert model.estimate([]).calls == 0


def test_larger_token_count_of_server_wins(server: Script) -> None:
    def dear(handler: Any, answer: Any) -> None:
        handler.reply(200, {**answer, "usage": {"prompt_tokens": 50_000, "completion_tokens": 10}})

    server.faults.append(dear)
    with create_extractor(server) as model:
        before = model.estimate(make_passages("Ines met Omar.")).tokens.sent
        extract(model)
        assert model.report.tokens == Tokens(50_000, 10)
        assert model.estimate(make_passages("Ines met Omar.")).tokens.sent > 40_000 > before


@pytest.mark.parametrize("usage", [None, {}, "none", {"prompt_tokens": "9", "completion_tokens": -1}])
def test_missing_usage_is_counted_locally(server: Script, usage: Any) -> None:
    server.faults.append(lambda handler, answer: handler.reply(200, {**answer, "usage": usage}))
    with create_extractor(server) as model:
        sent = model.estimate(make_passages(TEXT)).tokens.sent
        extract(model)
        assert model.report.tokens.sent == sent
        assert 0 < model.report.tokens.answered < 400


def test_second_run_uses_cache_only(server: Script, tmp_path: Path) -> None:
    server.faults.extend([answer_with("one"), answer_with("two")])
    with create_extractor(server, cache=tmp_path, concurrency=1) as model:
        first = model.extract(Document("d"), make_numbered_passages(5))
        assert model.report.fallbacks == {MALFORMED: 1}
    asked = len(server.requests)
    with create_extractor(server, cache=tmp_path, budget=Budget(tokens=0)) as model:
        estimate = model.estimate(make_numbered_passages(6))
        assert (estimate.calls, estimate.from_cache) == (1, 5)
        assert model.extract(Document("d"), make_numbered_passages(5)) == first
        assert (model.report.from_cache, model.report.calls) == (5, 0)
        assert model.report.fallbacks == {MALFORMED: 1}
    assert len(server.requests) == asked


def test_cache_key_has_title_options_and_text(server: Script, tmp_path: Path) -> None:
    with (
        create_extractor(server, cache=tmp_path) as model,
        create_extractor(server, cache=tmp_path, max_tokens=99) as other,
    ):
        extract(model)
        extract(model)
        extract(other)
        model.extract(Document("d"), [Passage("p", "d", TEXT, "Titled")])
        model.extract(Document("d"), [Passage("p", "d", TEXT, headings=("Headed",))])
    assert len(server.requests) == 4


def test_invalid_cache_file_raises(server: Script, tmp_path: Path) -> None:
    (tmp_path / "answers.sqlite").write_bytes(b"not a database, but long enough" * 100)
    with pytest.raises(StoreUnavailable, match=r"cache of answers in .* delete the file"):
        create_extractor(server, cache=tmp_path)


@pytest.mark.slow
def test_cached_answers_survive_kill(server: Script, tmp_path: Path) -> None:
    code = (
        "import sys, pathlib; from waylore.providers.extractors.llm import LLMExtractor as L;"
        "from waylore.types import Document as D, Passage as P;"
        "m = L('chat-model', base_url=sys.argv[1], cache=pathlib.Path(sys.argv[2]), concurrency=1);"
        "m.extract(D('d'), [P(str(i), 'd', f'Mara knows Kofi{i}.') for i in range(40)])"
    )
    server.pause = 0.1
    running = subprocess.Popen([sys.executable, "-c", code, server.url, str(tmp_path)])
    wait_until(lambda: len(server.requests) >= 6)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    server.pause = 0.0
    before = len(server.requests)
    assert before < 40
    with create_extractor(server, cache=tmp_path) as model:
        found = model.extract(Document("d"), make_numbered_passages(40))
        assert model.report.from_cache >= before - 1
    assert all(list_triples(said) == [("Mara", "knows", f"Kofi{i}")] for i, said in enumerate(found))
    assert len(server.requests) <= 41


def test_callers_tokenizer_counts_tokens(server: Script) -> None:
    tripled = LLMExtractor("m", base_url=server.url, count=lambda text: 3 * words.count_pieces(text))
    with tripled as dear, create_extractor(server) as plain:
        assert (
            dear.estimate(make_numbered_passages(3)).tokens.sent
            > 2 * plain.estimate(make_numbered_passages(3)).tokens.sent
        )


def test_invalid_settings_raise(server: Script) -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        create_extractor(server, concurrency=0)
    with pytest.raises(ConfigError, match="options must not contain max_tokens, n"):
        create_extractor(server, options={"n": 3, "max_tokens": 9_999, "seed": 1})
    with pytest.raises(ConfigError, match="https://"):
        LLMExtractor("m", base_url="api.example.com/v1")
    with pytest.raises(ConfigError, match="line end") as caught:
        LLMExtractor("m", api_key=f"{KEY}\n")
    assert KEY not in str(caught.value)


def test_password_in_address_is_hidden(server: Script) -> None:
    server.faults.append(fail_with(401))
    address = server.url.replace("http://", f"http://ines:{KEY}@")
    with LLMExtractor("m", base_url=address) as model, pytest.raises(ModelUnavailable) as caught:
        extract(model)
    assert "127.0.0.1" in str(caught.value)
    assert KEY not in str(caught.value)

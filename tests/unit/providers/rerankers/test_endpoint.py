"""EndpointReranker against a real HTTP server that answers and fails by script."""

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from unit.providers.loopback import (
    Answer,
    Fault,
    Handler,
    Script,
    answer_after_retry,
    answer_raw,
    change_results,
    cut_off,
    fail_with,
    score_text,
    serve,
)
from waylore.deadline import Deadline
from waylore.errors import ConfigError, ModelUnavailable
from waylore.protocols import Reranker
from waylore.providers.rerankers.endpoint import EndpointReranker

KEY = "sk-very-secret"
QUESTION = "Who keeps the lighthouse?"
TEXTS = ["Ada keeps bees.", "Nils keeps the lighthouse, the lighthouse of Kiel.", "Rain.", "The rain."]
EXPECTED = [score_text(QUESTION, text) for text in TEXTS]


@pytest.fixture
def server() -> Iterator[Script]:
    with serve() as script:
        yield script


def create_reranker(
    server: Script, *, batch_size: int = 32, concurrency: int = 4, timeout: float = 5.0, retries: int = 2
) -> EndpointReranker:
    return EndpointReranker(
        "rank-model",
        base_url=server.url,
        api_key=KEY,
        batch_size=batch_size,
        concurrency=concurrency,
        timeout=timeout,
        retries=retries,
        backoff=0.002,
    )


def test_request_follows_protocol(server: Script) -> None:
    with create_reranker(server) as model:
        assert isinstance(model, Reranker)
        assert model.name == "rank-model"
        assert model.rerank(QUESTION, TEXTS) == EXPECTED
        assert model.rerank(QUESTION, []) == []
    assert server.requests == [{"model": "rank-model", "query": QUESTION, "documents": TEXTS, "path": "/v1/rerank"}]
    assert server.authorisations == [f"Bearer {KEY}"]


def test_many_texts_are_sent_in_batches(server: Script) -> None:
    texts = [f"the lighthouse {'the ' * number}" for number in range(10)]
    server.pause = 0.03
    with create_reranker(server, batch_size=3, concurrency=2) as model:
        assert model.rerank(QUESTION, texts) == [score_text(QUESTION, text) for text in texts]
    assert sorted(len(request["documents"]) for request in server.requests) == [1, 3, 3, 3]
    assert server.max_running == 2


def test_threads_can_share_reranker(server: Script) -> None:
    with create_reranker(server) as model, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: model.rerank(QUESTION, TEXTS), range(8)))
    assert answers == [EXPECTED] * 8


@pytest.mark.parametrize(
    "fault",
    [*(fail_with(code) for code in (408, 429, 500, 503)), cut_off],
    ids=["408", "429", "500", "503", "cut"],
)
def test_transient_failure_is_retried(server: Script, fault: Fault) -> None:
    server.faults.append(fault)
    with create_reranker(server) as model:
        assert model.rerank(QUESTION, TEXTS) == EXPECTED
    assert len(server.requests) == 2


def test_slow_answer_is_retried(server: Script) -> None:
    server.faults.append(answer_after_retry)
    with create_reranker(server, timeout=1.0) as model:
        assert model.rerank(QUESTION, TEXTS) == EXPECTED
    assert len(server.requests) > 1


def test_slow_answers_end_with_the_deadline(server: Script) -> None:
    """A request of a service waits no longer than its own time: the search goes on without the scores."""
    server.faults.append(answer_after_retry)
    with create_reranker(server, timeout=60.0) as model:
        with Deadline(3.0).activate(), pytest.raises(ModelUnavailable, match="Timeout"):
            model.rerank(QUESTION, TEXTS)
        assert model.rerank(QUESTION, TEXTS) == EXPECTED


@pytest.mark.parametrize("code", [429, 500])
def test_last_failure_names_address_attempts_and_reason(server: Script, code: int) -> None:
    server.faults.extend([fail_with(code, "overloaded")] * 3)
    with create_reranker(server) as model, pytest.raises(ModelUnavailable, match=f"attempt 3.*{code}: overl") as caught:
        model.rerank(QUESTION, TEXTS)
    assert f"rank-model at {server.url}/rerank" in str(caught.value)
    assert "Check the address, the model's name, the key" in str(caught.value)
    assert len(server.requests) == 3


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422])
def test_permanent_failure_is_not_retried(server: Script, code: int) -> None:
    server.faults.append(fail_with(code, f"the key {KEY} is wrong"))
    with create_reranker(server) as model, pytest.raises(ModelUnavailable, match=f"{code}: the key") as caught:
        model.rerank(QUESTION, TEXTS)
    assert KEY not in str(caught.value)
    assert KEY not in repr(model)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (change_results(lambda rows: rows[:-1]), "3 scores for 4 passages"),
        (change_results(lambda rows: [*rows, {"index": 4, "relevance_score": 1.0}]), "5 scores for 4 passages"),
        (change_results(lambda rows: [{**row, "index": 0} for row in rows]), "1 scores for 4 passages"),
        (change_results(lambda rows: [{**row, "index": -1} for row in rows]), "1 scores for 4 passages"),
        (change_results(lambda rows: [{**row, "relevance_score": float("nan")} for row in rows]), "not a finite"),
        (change_results(lambda rows: [{**row, "relevance_score": float("inf")} for row in rows]), "not a finite"),
        (change_results(lambda rows: [{**row, "relevance_score": None} for row in rows]), "no scores"),
        (change_results(lambda rows: []), "no scores"),
        (answer_raw(b"<html>welcome</html>"), "no scores: '<html>welcome"),
        (answer_raw(b"{}"), "no scores"),
        (answer_raw(b'"results"'), "no scores"),
        (answer_raw(b'{"results": [1, 2, 3, 4]}'), "no scores"),
        (answer_raw(b'{"results": [{"index": 0}]}'), "no scores"),
    ],
)
def test_wrong_answer_raises(server: Script, fault: Fault, message: str) -> None:
    server.faults.append(fault)
    with create_reranker(server) as model, pytest.raises(ModelUnavailable, match=message):
        model.rerank(QUESTION, TEXTS)


def test_scores_of_voyage_are_read(server: Script) -> None:
    def answer_data(handler: Handler, answer: Answer) -> None:
        handler.reply(200, {"object": "list", "data": answer["results"]})

    server.faults.append(answer_data)
    with create_reranker(server) as model:
        assert model.rerank(QUESTION, TEXTS) == EXPECTED


def test_text_embeddings_inference_gets_texts(server: Script) -> None:
    def refuse(handler: Handler, _: Answer) -> None:
        reason = b"Failed to deserialize the JSON body into the target type: missing field `texts` at line 1 column 80"
        handler.reply(422, reason)

    def answer_list(handler: Handler, answer: Answer) -> None:
        rows = [{"index": row["index"], "score": row["relevance_score"]} for row in answer["results"]]
        handler.reply(200, json.dumps(rows).encode())

    server.faults.extend([refuse, answer_list, answer_list])
    with create_reranker(server) as model:
        assert model.rerank(QUESTION, TEXTS) == EXPECTED
        assert model.rerank(QUESTION, TEXTS) == EXPECTED
    assert ["documents" in request for request in server.requests] == [True, False, False]
    assert server.requests[1] == {"query": QUESTION, "texts": TEXTS, "truncate": True, "path": "/v1/rerank"}


def test_invalid_address_and_key_raise() -> None:
    with pytest.raises(ConfigError, match="https://"):
        EndpointReranker("rank-model", base_url="api.example.com/v1")
    with pytest.raises(ConfigError, match="line end") as caught:
        EndpointReranker("rank-model", base_url="https://api.example.com/v1", api_key=f"{KEY}\n")
    assert KEY not in str(caught.value)


def test_missing_httpx_names_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ModelUnavailable, match=r"pip install 'waylore\[openai\]'"):
        EndpointReranker("rank-model", base_url="https://api.example.com/v1")

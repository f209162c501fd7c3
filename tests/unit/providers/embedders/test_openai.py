"""OpenAIEmbedder against a real HTTP server that answers and fails by script."""

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate
from functools import partial

import numpy as np
import pytest

from unit.providers.loopback import (
    Fault,
    Script,
    answer,
    answer_after_retry,
    answer_raw,
    change_rows,
    cut_off,
    fail_with,
    make_vectors,
    serve,
)
from waylore.errors import ConfigError, DimensionMismatch, ModelUnavailable
from waylore.protocols import Embedder
from waylore.providers.embedders.openai import OpenAIEmbedder
from waylore.providers.endpoint import MAX_WAIT_SECONDS, wait_before_retry

KEY = "sk-very-secret"
TEXTS = [f"passage number {i}" for i in range(10)]


@pytest.fixture
def server() -> Iterator[Script]:
    with serve() as script:
        yield script


def create_embedder(
    server: Script,
    *,
    batch_size: int = 128,
    concurrency: int = 4,
    timeout: float = 5.0,
    retries: int = 3,
    dimension: int | None = None,
) -> OpenAIEmbedder:
    return OpenAIEmbedder(
        "text-model",
        base_url=server.url,
        api_key=KEY,
        batch_size=batch_size,
        concurrency=concurrency,
        timeout=timeout,
        retries=retries,
        dimension=dimension,
        backoff=0.002,
    )


def test_rows_are_unit_vectors_in_order(server: Script) -> None:
    with create_embedder(server, batch_size=3) as model:
        rows = model.embed_passages(TEXTS)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, make_vectors(TEXTS), rtol=1e-6)
    assert sorted(len(request["input"]) for request in server.requests) == [1, 3, 3, 3]


def test_request_follows_protocol(server: Script) -> None:
    with create_embedder(server) as model:
        model.embed_passages(["one", "two"])
    assert server.requests == [
        {
            "model": "text-model",
            "input": ["one", "two"],
            "encoding_format": "float",
            "path": "/v1/embeddings",
        }
    ]
    assert server.authorisations == [f"Bearer {KEY}"]


def test_dimension_comes_from_server(server: Script) -> None:
    with create_embedder(server) as model:
        assert isinstance(model, Embedder)
        assert model.dimension == 3
        assert model.dimension == 3
    assert len(server.requests) == 1


def test_no_texts_give_no_rows(server: Script) -> None:
    with create_embedder(server, dimension=3) as model:
        assert model.embed_passages([]).shape == (0, 3)
    assert not server.requests


def test_empty_text_is_sent_as_space(server: Script) -> None:
    with create_embedder(server) as model:
        assert np.linalg.norm(model.embed_query("")) == pytest.approx(1)
    assert server.requests[0]["input"] == [" "]


def test_prefixes_are_sent_and_in_name(server: Script) -> None:
    prefixed = partial(OpenAIEmbedder, "text-model", base_url=server.url)
    with prefixed(query_prefix="q: ", passage_prefix="p: ") as model, prefixed() as plain:
        model.embed_query("tea")
        model.embed_passages(["tea"])
        assert plain.name == "text-model"
        assert model.name.startswith("text-model@")
    assert [request["input"] for request in server.requests] == [["q: tea"], ["p: tea"]]
    assert server.authorisations == [None, None]


def test_concurrency_limits_parallel_batches(server: Script) -> None:
    server.pause = 0.03
    with create_embedder(server, batch_size=1, concurrency=3) as model:
        model.embed_passages(TEXTS)
    assert server.max_running == 3


def test_threads_can_share_embedder(server: Script) -> None:
    with create_embedder(server, batch_size=2) as model, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda i: model.embed_passages([TEXTS[i]]), range(10)))
    np.testing.assert_allclose(np.concatenate(answers), make_vectors(TEXTS), rtol=1e-6)


@pytest.mark.parametrize(
    "fault",
    [*(fail_with(code) for code in (408, 409, 429, 500, 502, 503, 529)), cut_off],
    ids=["408", "409", "429", "500", "502", "503", "529", "cut"],
)
def test_transient_failure_is_retried(server: Script, fault: Fault) -> None:
    server.faults.append(fault)
    with create_embedder(server) as model:
        np.testing.assert_allclose(model.embed_passages(TEXTS), make_vectors(TEXTS), rtol=1e-6)
    assert len(server.requests) == 2


def test_timeout_is_retried(server: Script) -> None:
    server.faults.append(answer_after_retry)
    with create_embedder(server, timeout=1.0) as model:
        np.testing.assert_allclose(model.embed_passages(TEXTS), make_vectors(TEXTS), rtol=1e-6)
    assert len(server.requests) > 1


def test_failing_batch_is_retried_alone(server: Script) -> None:
    server.faults.extend([answer, fail_with(500), answer, cut_off])
    with create_embedder(server, batch_size=2) as model:
        np.testing.assert_allclose(model.embed_passages(TEXTS), make_vectors(TEXTS), rtol=1e-6)
    assert len(server.requests) == 5 + 2


@pytest.mark.parametrize(
    "after", ["0.2", formatdate(time.time() - 60, usegmt=True), "soon"], ids=["seconds", "a date", "neither"]
)
def test_retry_after_is_respected(server: Script, after: str) -> None:
    server.faults.append(fail_with(429, Retry_After=after))
    with create_embedder(server) as model:
        model.embed_query("tea")
    waited = server.at[1] - server.at[0]
    assert waited >= (0.2 if after == "0.2" else 0.0)


def test_delays_are_random_growing_and_bounded() -> None:
    assert {wait_before_retry(2, backoff=0.5) <= 2.0 for _ in range(100)} == {True}
    assert len({wait_before_retry(2, backoff=0.5) for _ in range(10)}) > 1
    assert wait_before_retry(0, backoff=0.5, retry_after=7.0) >= 7.0
    assert wait_before_retry(0, backoff=0.5, retry_after=86_400.0) == MAX_WAIT_SECONDS
    assert wait_before_retry(200, backoff=1e9) == MAX_WAIT_SECONDS


def test_last_failure_names_address_attempts_and_reason(server: Script) -> None:
    server.faults.extend([fail_with(503, "overloaded")] * 4)
    with (
        create_embedder(server) as model,
        pytest.raises(ModelUnavailable, match=r"attempt 4.*503: overloaded") as caught,
    ):
        model.embed_query("tea")
    assert f"text-model at {server.url}/embeddings" in str(caught.value)
    assert len(server.requests) == 4


def test_unreachable_server_is_named_with_cause() -> None:
    with serve() as gone:
        pass
    with (
        create_embedder(gone, retries=1) as model,
        pytest.raises(ModelUnavailable, match="ConnectError") as caught,
    ):
        model.embed_query("tea")
    assert type(caught.value.__cause__).__name__ == "ConnectError"


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422])
def test_permanent_failure_is_not_retried(server: Script, code: int) -> None:
    server.faults.append(fail_with(code, "no such model"))
    with create_embedder(server) as model, pytest.raises(ModelUnavailable, match=f"{code}: no such model"):
        model.embed_query("tea")
    assert len(server.requests) == 1


def test_api_key_is_hidden_in_errors(server: Script) -> None:
    server.faults.append(fail_with(401, f"Incorrect API key provided: {KEY}"))
    with create_embedder(server) as model, pytest.raises(ModelUnavailable) as caught:
        model.embed_query("tea")
    assert "Incorrect API key provided" in str(caught.value)
    assert KEY not in str(caught.value)
    assert KEY not in repr(model)


def test_invalid_api_key_raises_without_showing_it() -> None:
    with pytest.raises(ConfigError, match="line end") as caught:
        OpenAIEmbedder("text-model", api_key=f"{KEY}\n")
    assert KEY not in str(caught.value)


def test_address_without_scheme_raises() -> None:
    with pytest.raises(ConfigError, match="https://"):
        OpenAIEmbedder("text-model", base_url="api.example.com/v1")


def test_rows_in_other_order_are_sorted(server: Script) -> None:
    server.faults.append(change_rows(lambda rows: rows[::-1]))
    with create_embedder(server) as model:
        np.testing.assert_allclose(model.embed_passages(TEXTS), make_vectors(TEXTS), rtol=1e-6)


@pytest.mark.parametrize(
    "fault",
    [
        change_rows(lambda rows: rows[:-1]),
        change_rows(lambda rows: [*rows, {"index": 99, "embedding": [1.0, 0.0, 0.0]}]),
        change_rows(lambda rows: [{**row, "index": 0} for row in rows]),
        change_rows(lambda rows: [{**rows[0], "embedding": [1.0, 2.0]}, *rows[1:]]),
        change_rows(lambda rows: [{**row, "embedding": [1.0]} for row in rows]),
    ],
    ids=["too few", "too many", "same index", "ragged", "too short"],
)
def test_wrong_counts_and_lengths_raise(server: Script, fault: Fault) -> None:
    server.faults.append(fault)
    with create_embedder(server, dimension=3) as model, pytest.raises(DimensionMismatch):
        model.embed_passages(TEXTS)


def test_learned_dimension_stays(server: Script) -> None:
    server.faults.extend([answer, change_rows(lambda rows: [{**rows[0], "embedding": [1.0]}])])
    with create_embedder(server) as model:
        model.embed_query("tea")
        with pytest.raises(DimensionMismatch, match="length 1, not 3"):
            model.embed_query("coffee")


@pytest.mark.parametrize(
    "content",
    [
        b"<html>welcome</html>",
        b"{}",
        b'{"data": [{"index": 0}]}',
        b'{"data": [{"index": 0, "embedding": "AAAA"}]}',
        b'{"data": [{"index": 0, "embedding": [1, null, 2]}]}',
        b'{"data": [{"index": 0, "embedding": [1, NaN, 2]}]}',
    ],
)
def test_response_without_embeddings_raises(server: Script, content: bytes) -> None:
    server.faults.append(answer_raw(content))
    with create_embedder(server) as model, pytest.raises(ModelUnavailable):
        model.embed_query("tea")


def test_missing_httpx_names_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ModelUnavailable, match=r"pip install 'waylore\[openai\]'"):
        OpenAIEmbedder("text-model")

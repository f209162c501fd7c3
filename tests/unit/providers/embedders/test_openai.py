"""OpenAIEmbedder against a real HTTP server that answers, and fails, by script."""

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
    changed,
    cut,
    raw,
    right,
    serving,
    slow,
    status,
    vectors,
)
from waylore.errors import ConfigError, DimensionMismatch, ModelUnavailable
from waylore.protocols import Embedder
from waylore.providers.embedders.openai import OpenAIEmbedder
from waylore.providers.endpoint import LONGEST_WAIT, wait_before_retry

KEY = "sk-very-secret"
TEXTS = [f"passage number {i}" for i in range(10)]


@pytest.fixture
def server() -> Iterator[Script]:
    with serving() as script:
        yield script


def embedder(
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


def test_embeds_in_order_with_unit_rows(server: Script) -> None:
    with embedder(server, batch_size=3) as model:
        rows = model.embed_passages(TEXTS)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, vectors(TEXTS), rtol=1e-6)
    assert sorted(len(request["input"]) for request in server.requests) == [1, 3, 3, 3]


def test_speaks_the_protocol(server: Script) -> None:
    with embedder(server) as model:
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


def test_is_an_embedder_and_learns_its_dimension_from_the_server(server: Script) -> None:
    with embedder(server) as model:
        assert isinstance(model, Embedder)
        assert model.dimension == 3
        assert model.dimension == 3
    assert len(server.requests) == 1


def test_nothing_to_embed_is_no_rows(server: Script) -> None:
    with embedder(server, dimension=3) as model:
        assert model.embed_passages([]).shape == (0, 3)
    assert not server.requests


def test_an_empty_text_is_sent_as_a_space_because_openai_refuses_it(server: Script) -> None:
    with embedder(server) as model:
        assert np.linalg.norm(model.embed_query("")) == pytest.approx(1)
    assert server.requests[0]["input"] == [" "]


def test_prefixes_tell_questions_from_passages_and_are_part_of_the_name(server: Script) -> None:
    prefixed = partial(OpenAIEmbedder, "text-model", base_url=server.url)
    with prefixed(query_prefix="q: ", passage_prefix="p: ") as model, prefixed() as plain:
        model.embed_query("tea")
        model.embed_passages(["tea"])
        assert plain.name == "text-model"
        assert model.name.startswith("text-model@")
    assert [request["input"] for request in server.requests] == [["q: tea"], ["p: tea"]]
    assert server.authorisations == [None, None]


def test_batches_run_in_parallel_and_never_more_than_allowed(server: Script) -> None:
    server.pause = 0.03
    with embedder(server, batch_size=1, concurrency=3) as model:
        model.embed_passages(TEXTS)
    assert server.most_running == 3


def test_threads_share_an_embedder(server: Script) -> None:
    with embedder(server, batch_size=2) as model, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda i: model.embed_passages([TEXTS[i]]), range(10)))
    np.testing.assert_allclose(np.concatenate(answers), vectors(TEXTS), rtol=1e-6)


@pytest.mark.parametrize(
    "fault",
    [*(status(code) for code in (408, 409, 429, 500, 502, 503, 529)), cut],
    ids=["408", "409", "429", "500", "502", "503", "529", "cut"],
)
def test_what_may_pass_is_tried_again(server: Script, fault: Fault) -> None:
    server.faults.append(fault)
    with embedder(server) as model:
        np.testing.assert_allclose(model.embed_passages(TEXTS), vectors(TEXTS), rtol=1e-6)
    assert len(server.requests) == 2


def test_an_answer_that_is_late_is_asked_for_again(server: Script) -> None:
    server.faults.append(slow(0.6))
    with embedder(server, timeout=0.3) as model:
        np.testing.assert_allclose(model.embed_passages(TEXTS), vectors(TEXTS), rtol=1e-6)
    assert len(server.requests) > 1


def test_one_failing_batch_is_retried_alone(server: Script) -> None:
    server.faults.extend([right, status(500), right, cut])
    with embedder(server, batch_size=2) as model:
        np.testing.assert_allclose(model.embed_passages(TEXTS), vectors(TEXTS), rtol=1e-6)
    assert len(server.requests) == 5 + 2


@pytest.mark.parametrize(
    "after", ["0.2", formatdate(time.time() - 60, usegmt=True), "soon"], ids=["seconds", "a date", "neither"]
)
def test_waits_as_long_as_the_server_asks(server: Script, after: str) -> None:
    server.faults.append(status(429, Retry_After=after))
    with embedder(server) as model:
        model.embed_query("tea")
    waited = server.at[1] - server.at[0]
    assert waited >= (0.2 if after == "0.2" else 0.0)


def test_waits_are_random_grow_and_have_an_end() -> None:
    assert {wait_before_retry(2, backoff=0.5) <= 2.0 for _ in range(100)} == {True}
    assert len({wait_before_retry(2, backoff=0.5) for _ in range(10)}) > 1
    assert wait_before_retry(0, backoff=0.5, asked=7.0) >= 7.0
    assert wait_before_retry(0, backoff=0.5, asked=86_400.0) == LONGEST_WAIT
    assert wait_before_retry(200, backoff=1e9) == LONGEST_WAIT


def test_gives_up_and_says_where_what_how_often_and_why(server: Script) -> None:
    server.faults.extend([status(503, "overloaded")] * 4)
    with (
        embedder(server) as model,
        pytest.raises(ModelUnavailable, match=r"attempt 4.*503: overloaded") as caught,
    ):
        model.embed_query("tea")
    assert f"text-model at {server.url}/embeddings" in str(caught.value)
    assert len(server.requests) == 4


def test_a_server_that_is_not_there_is_named_with_its_cause() -> None:
    with serving() as gone:
        pass
    with (
        embedder(gone, retries=1) as model,
        pytest.raises(ModelUnavailable, match="ConnectError") as caught,
    ):
        model.embed_query("tea")
    assert type(caught.value.__cause__).__name__ == "ConnectError"


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422])
def test_what_will_not_pass_is_tried_once(server: Script, code: int) -> None:
    server.faults.append(status(code, "no such model"))
    with embedder(server) as model, pytest.raises(ModelUnavailable, match=f"{code}: no such model"):
        model.embed_query("tea")
    assert len(server.requests) == 1


def test_the_key_is_never_told_even_if_the_server_tells_it(server: Script) -> None:
    server.faults.append(status(401, f"Incorrect API key provided: {KEY}"))
    with embedder(server) as model, pytest.raises(ModelUnavailable) as caught:
        model.embed_query("tea")
    assert "Incorrect API key provided" in str(caught.value)
    assert KEY not in str(caught.value)
    assert KEY not in repr(model)


def test_a_key_that_no_header_can_carry_is_refused_without_telling_it() -> None:
    with pytest.raises(ConfigError, match="line end") as caught:
        OpenAIEmbedder("text-model", api_key=f"{KEY}\n")
    assert KEY not in str(caught.value)


def test_an_address_without_a_scheme_is_refused() -> None:
    with pytest.raises(ConfigError, match="https://"):
        OpenAIEmbedder("text-model", base_url="api.example.com/v1")


def test_answers_in_another_order_are_put_in_order(server: Script) -> None:
    server.faults.append(changed(lambda rows: rows[::-1]))
    with embedder(server) as model:
        np.testing.assert_allclose(model.embed_passages(TEXTS), vectors(TEXTS), rtol=1e-6)


@pytest.mark.parametrize(
    "fault",
    [
        changed(lambda rows: rows[:-1]),
        changed(lambda rows: [*rows, {"index": 99, "embedding": [1.0, 0.0, 0.0]}]),
        changed(lambda rows: [{**row, "index": 0} for row in rows]),
        changed(lambda rows: [{**rows[0], "embedding": [1.0, 2.0]}, *rows[1:]]),
        changed(lambda rows: [{**row, "embedding": [1.0]} for row in rows]),
    ],
    ids=["too few", "too many", "same index", "ragged", "too short"],
)
def test_wrong_counts_and_lengths_are_refused(server: Script, fault: Fault) -> None:
    server.faults.append(fault)
    with embedder(server, dimension=3) as model, pytest.raises(DimensionMismatch):
        model.embed_passages(TEXTS)


def test_a_length_once_learnt_is_kept(server: Script) -> None:
    server.faults.extend([right, changed(lambda rows: [{**rows[0], "embedding": [1.0]}])])
    with embedder(server) as model:
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
def test_answers_that_are_not_embeddings_are_refused(server: Script, content: bytes) -> None:
    server.faults.append(raw(content))
    with embedder(server) as model, pytest.raises(ModelUnavailable):
        model.embed_query("tea")


def test_without_httpx_it_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ModelUnavailable, match=r"pip install 'waylore\[openai\]'"):
        OpenAIEmbedder("text-model")

"""Serve OpenAI's protocol on loopback: our vectors for every peer, and a scripted chat for those that need a model.

A text that is a question of the set gets the vector of a question, every other the vector of a passage. Vectors are
cached in a folder, so that a second run costs no model. The server counts what it was asked for.
"""

import base64
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from benchmarks.peers.adapters.frame import MODEL
from waylore.protocols import CountTokens, Embedder

Chat = Callable[[Mapping[str, Any]], str]  # answers a request for a completion


@dataclass(slots=True)
class ServedCounts:
    """What a server was asked for. `seconds` were spent on vectors, which is the same work for every peer."""

    texts: int = 0
    seconds: float = 0.0
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0


class ModelServer(ThreadingHTTPServer):
    """A server with an embedder, the questions of a set, and a chat."""

    daemon_threads = True

    def __init__(self, embedder: Embedder, questions: frozenset[str], chat: Chat, count: CountTokens) -> None:
        super().__init__(("127.0.0.1", 0), ModelRequest)
        self.embedder, self.questions, self.chat, self.count = embedder, questions, chat, count
        self.counts = ServedCounts()
        self.lock = threading.Lock()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a peer that was killed while it waited for an answer."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """The address that a peer is given."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def embed(self, texts: list[str]) -> Any:
        """Return a row for each text."""
        with self.lock:
            start = time.perf_counter()
            rows = np.stack([self._embed_one(text) for text in texts]) if len(texts) == 1 else self._embed_all(texts)
            self.counts.texts += len(texts)
            self.counts.seconds += time.perf_counter() - start
            return rows

    def _embed_one(self, text: str) -> Any:
        if text.strip() in self.questions:
            return self.embedder.embed_query(text.strip())
        return self.embedder.embed_passages([text])[0]

    def _embed_all(self, texts: list[str]) -> Any:
        rows = np.array(self.embedder.embed_passages(texts))
        for number, text in enumerate(texts):
            if text.strip() in self.questions:
                rows[number] = self.embedder.embed_query(text.strip())
        return rows

    def answer(self, request: Mapping[str, Any]) -> str:
        """Return the scripted answer to a request for a completion, and count its tokens."""
        content = self.chat(request)
        prompt = "\n".join(read_content(message) for message in request["messages"])
        with self.lock:
            self.counts.calls += 1
            self.counts.prompt_tokens += self.count(prompt)
            self.counts.completion_tokens += self.count(content)
        return content


def read_content(message: Mapping[str, Any]) -> str:
    """Return the text of a message, which may come in parts."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(str(part.get("text", "")) for part in content)


class ModelRequest(BaseHTTPRequestHandler):
    """A request for vectors or for a completion."""

    protocol_version = "HTTP/1.1"
    server: ModelServer

    def do_POST(self) -> None:
        """Answer a request."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/embeddings"):
            self._send(self._make_vectors(body))
        elif self.path.endswith("/chat/completions"):
            try:
                self._send(make_completion(body, self.server.answer(body)))
            except ValueError as error:
                print(error, file=sys.stderr)
                self.send_error(400, "no script for this prompt")
        else:
            self.send_error(404)

    def do_GET(self) -> None:
        """List the models, or the counts."""
        known = {"object": "list", "data": [{"id": MODEL, "object": "model"}]}
        self._send(asdict(self.server.counts) if self.path.endswith("/counts") else known)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Print nothing for each request."""

    def _make_vectors(self, body: Mapping[str, Any]) -> dict[str, Any]:
        texts = [body["input"]] if isinstance(body["input"], str) else list(body["input"])
        rows = self.server.embed(texts).astype(np.float32)
        is_packed = body.get("encoding_format") == "base64"
        vectors = [base64.b64encode(row.tobytes()).decode() if is_packed else row.tolist() for row in rows]
        data = [{"object": "embedding", "index": n, "embedding": vector} for n, vector in enumerate(vectors)]
        return {"object": "list", "model": MODEL, "data": data, "usage": {"prompt_tokens": 0, "total_tokens": 0}}

    def _send(self, answer: Mapping[str, Any]) -> None:
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def make_completion(request: Mapping[str, Any], content: str) -> dict[str, Any]:
    """Return a completion in OpenAI's format; as a call of the first tool if the request has tools."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if tools := request.get("tools"):
        function = {"name": tools[0]["function"]["name"], "arguments": content}
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        }
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if tools else "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {
        "id": "scripted",
        "object": "chat.completion",
        "created": 0,
        "model": request.get("model", "scripted"),
        "choices": [choice],
        "usage": usage,
    }


@contextmanager
def start_server(
    embedder: Embedder, questions: frozenset[str], chat: Chat, count: CountTokens
) -> Iterator[ModelServer]:
    """Start a server in a thread; stop it at the end."""
    server = ModelServer(embedder, questions, chat, count)
    thread = threading.Thread(target=server.serve_forever, name="peers-server")
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

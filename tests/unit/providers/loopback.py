"""A real HTTP server on 127.0.0.1 that speaks the embeddings, chat and rerank protocols and fails on request.

Faults are queued, and each request uses up the next one; without a fault the answer is right. The vector of a
text is three numbers made from its letters, so a test can recognise it. A chat is answered with the facts of
the passage's sentences, which have three words each. The server adds up what it charges. A document's score counts the
words of the query in it.
"""

import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from tools.waiting import wait_until

from waylore.protocols import Vectors

Answer = dict[str, Any]
Fault = Callable[["Handler", Answer], None]


def make_vectors(texts: list[str]) -> Vectors:
    """Return the unit vectors that the server answers with."""
    rows = np.array([_make_vector(text) for text in texts], dtype=np.float32)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def _make_vector(text: str) -> list[float]:
    return [1.0 + len(text), float(sum(map(ord, text)) % 97), float(ord(text[-1]))]


def _answer_embeddings(request: Answer) -> Answer:
    rows = [
        {"object": "embedding", "index": index, "embedding": _make_vector(text)}
        for index, text in enumerate(request["input"])
    ]
    return {"object": "list", "data": rows, "model": request["model"]}


def score_text(query: str, text: str) -> float:
    """Return the score of a document: how often it has words of the query."""
    words = re.findall(r"\w+", text.lower())
    return float(sum(words.count(word) for word in re.findall(r"\w+", query.lower())))


def _answer_rerank(request: Answer) -> Answer:
    scored = [
        (score_text(request["query"], text), at) for at, text in enumerate(request.get("documents") or request["texts"])
    ]
    rows = [{"index": at, "relevance_score": score} for score, at in sorted(scored, reverse=True)]
    return {"id": "1", "results": rows}


def format_facts(text: str) -> str:
    """Return the answer of a model for sentences of three words: a subject, a predicate and an object."""
    triples = [sentence.split() for sentence in text.split(".") if len(sentence.split()) == 3]
    names = dict.fromkeys(name for triple in triples for name in (triple[0], triple[2]))
    entities = [{"name": n, "type": "person", "description": f"{n} is told of", "aliases": []} for n in names]
    facts = [
        {"subject": s, "predicate": p, "object": o, "statement": f"{s} {p} {o}", "weight": 7, "confidence": 0.9}
        for s, p, o in triples
    ]
    return json.dumps({"entities": entities, "facts": facts}, ensure_ascii=False)


def make_completion(content: str | None, *, sent: int = 10, finish: str = "stop") -> Answer:
    """Return a chat completion in OpenAI's form."""
    message = {"role": "assistant", "content": content}
    usage = {"prompt_tokens": sent, "completion_tokens": len((content or "").split())}
    choices = [{"index": 0, "message": message, "finish_reason": finish}]
    return {"object": "chat.completion", "choices": choices, "usage": usage}


@dataclass
class Script:
    """The faults that the server shall produce, and the requests it received."""

    faults: deque[Fault] = field(default_factory=deque)
    requests: list[Answer] = field(default_factory=list)
    authorisations: list[str | None] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    pause: float = 0.0
    running: int = 0
    max_running: int = 0
    url: str = ""
    charged: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def answer_chat(self, request: Answer) -> Answer:
        """Return a completion that states the facts of the passage."""
        content = format_facts(request["messages"][1]["content"].partition("Passage:\n")[2])
        sent = sum(len(message["content"].split()) for message in request["messages"])
        return make_completion(content, sent=sent)


class Handler(BaseHTTPRequestHandler):
    """Answers one POST, with the next fault if there is one."""

    protocol_version = "HTTP/1.1"
    script: Script

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fault = self._record(request)
        try:
            time.sleep(self.script.pause)
            fault(self, self._make_answer(request))
        finally:
            with self.script.lock:
                self.script.running -= 1

    def _make_answer(self, request: Answer) -> Answer:
        if "query" in request:
            return _answer_rerank(request)
        return self.script.answer_chat(request) if "messages" in request else _answer_embeddings(request)

    def _record(self, request: Answer) -> Fault:
        script = self.script
        with script.lock:
            script.requests.append({**request, "path": self.path})
            script.authorisations.append(self.headers["Authorization"])
            script.at.append(time.monotonic())
            script.running += 1
            script.max_running = max(script.max_running, script.running)
            return script.faults.popleft() if script.faults else answer_and_charge if "messages" in request else answer

    def reply(self, status: int, body: Answer | bytes, **headers: str) -> None:
        """Send a complete response."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing."""


def answer(handler: Handler, answer: Answer) -> None:
    """Answer as OpenAI does."""
    handler.reply(200, answer)


def answer_and_charge(handler: Handler, answer: Answer) -> None:
    """Answer as OpenAI does and add up the charge."""
    with handler.script.lock:
        handler.script.charged += answer["usage"]["prompt_tokens"] + answer["usage"]["completion_tokens"]
    handler.reply(200, answer)


def fail_with(code: int, message: str = "try later", **headers: str) -> Fault:
    """Answer with an error in OpenAI's form."""
    return lambda handler, _: handler.reply(code, {"error": {"message": message}}, **headers)


def answer_after_retry(handler: Handler, request: Answer) -> None:
    """Answer correctly, but only after the next request; the client may have closed the connection by then."""
    number = len(handler.script.requests)
    wait_until(lambda: len(handler.script.requests) > number)
    try:
        answer(handler, request)
    except OSError:
        handler.close_connection = True


def cut_off(handler: Handler, answer: Answer) -> None:
    """Announce a long body, send half of it and close the connection."""
    content = json.dumps(answer).encode()
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content[: len(content) // 2])
    handler.close_connection = True


def change_rows(change: Callable[[list[Answer]], list[Answer]]) -> Fault:
    """Answer with changed rows."""
    return lambda handler, answer: handler.reply(200, {**answer, "data": change(answer["data"])})


def change_results(change: Callable[[list[Answer]], list[Answer]]) -> Fault:
    """Answer with changed scores."""
    return lambda handler, answer: handler.reply(200, {**answer, "results": change(answer["results"])})


def answer_with(content: str | None, *, finish: str = "stop") -> Fault:
    """Answer a chat with this content."""
    return lambda handler, _: answer_and_charge(handler, make_completion(content, finish=finish))


def answer_raw(content: bytes) -> Fault:
    """Answer 200 with this body."""
    return lambda handler, _: handler.reply(200, content)


@contextmanager
def serve() -> Iterator[Script]:
    """Run the server in a thread during a `with` block."""
    script = Script()
    handler = type("ScriptedHandler", (Handler,), {"script": script})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    script.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

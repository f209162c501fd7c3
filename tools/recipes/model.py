"""Serve OpenAI's protocol on loopback with a model that follows a script, for agents that run without a key.

A message that begins with "Remember" makes the model call `memory_remember`; for any other it calls `memory_search`,
and its answer is the result of the tool. Without tools, its answer is what the instructions say. Chat completions and
responses are served, without streaming.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

Role = Literal["user", "assistant", "tool", "system"]
SEARCH, REMEMBER = "memory_search", "memory_remember"
ROLES: Mapping[str, Role] = {"developer": "system", "system": "system", "assistant": "assistant", "tool": "tool"}


@dataclass(frozen=True, slots=True)
class Turn:
    """A message of a request."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The decision of the model to call a tool."""

    name: str
    arguments: str


def decide(turns: Sequence[Turn], tools: Sequence[str]) -> ToolUse | str:
    """Return the tool that the script calls next, or its answer."""
    last = turns[-1]
    if last.role == "tool":
        return last.text
    if last.text.startswith("Remember") and REMEMBER in tools:
        return ToolUse(REMEMBER, json.dumps({"text": last.text.removeprefix("Remember that ")}))
    if SEARCH in tools:
        return ToolUse(SEARCH, json.dumps({"query": last.text}))
    return "\n".join(turn.text for turn in turns if turn.role == "system")


# -- what a request says ---------------------------------------------------------------------------------


def read_turns(body: Mapping[str, Any]) -> list[Turn]:
    """Return the messages of a request for a completion or a response."""
    if "messages" in body:
        return [Turn(ROLES.get(each["role"], "user"), read_text(each.get("content"))) for each in body["messages"]]
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    instructions = [Turn("system", body["instructions"])] if body.get("instructions") else []
    return [*instructions, *map(read_item, items)]


def read_item(item: Mapping[str, Any]) -> Turn:
    """Return an item of a request for a response: a message, a call of a tool or its result."""
    if item.get("type") == "function_call_output":
        return Turn("tool", read_text(item["output"]))
    if item.get("type") == "function_call":
        return Turn("assistant", "")
    return Turn(ROLES.get(item["role"], "user"), read_text(item["content"]))


def read_text(content: Any) -> str:
    """Return the text of a message, which may come in parts."""
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(str(part.get("text", "")) for part in content)


def read_tools(body: Mapping[str, Any]) -> list[str]:
    """Return the names of the tools that a request offers."""
    return [each.get("function", each).get("name", "") for each in body.get("tools") or ()]


# -- what is answered ------------------------------------------------------------------------------------


def make_completion(model: str, decision: ToolUse | str) -> dict[str, Any]:
    """Return a decision as a chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": decision if isinstance(decision, str) else None}
    if isinstance(decision, ToolUse):
        function = {"name": decision.name, "arguments": decision.arguments}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": function}]
    reason = "stop" if isinstance(decision, str) else "tool_calls"
    return {
        "id": "scripted",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def make_response(model: str, decision: ToolUse | str) -> dict[str, Any]:
    """Return a decision as a response."""
    item: dict[str, Any]
    if isinstance(decision, str):
        content = [{"type": "output_text", "text": decision, "annotations": []}]
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
    else:
        call = {"name": decision.name, "arguments": decision.arguments}
        item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "status": "completed", **call}
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": model,
        "output": [item],
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2,
        },
    }


class ScriptedModel(ThreadingHTTPServer):
    """A server with the script; `called` lists the tools that its answers called."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), ScriptedRequest)
        self.called: list[str] = []

    @property
    def url(self) -> str:
        """The address that an agent gets as OPENAI_BASE_URL."""
        return f"http://127.0.0.1:{self.server_port}/v1"


class ScriptedRequest(BaseHTTPRequestHandler):
    """A request for a completion or a response."""

    protocol_version = "HTTP/1.1"
    server: ScriptedModel

    def do_POST(self) -> None:
        """Answer by the script."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        makers = {"/v1/chat/completions": make_completion, "/v1/responses": make_response}
        if self.path not in makers or body.get("stream"):
            self.send_error(404, "not in the script")
            return
        decision = decide(read_turns(body), read_tools(body))
        if isinstance(decision, ToolUse):
            self.server.called.append(decision.name)
        self._send(makers[self.path](body["model"], decision))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name is that of the base class)
        """Print nothing."""

    def _send(self, answer: Mapping[str, Any]) -> None:
        content = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


@contextmanager
def serve_model() -> Iterator[ScriptedModel]:
    """Serve the model until the caller is done."""
    server = ScriptedModel()
    thread = threading.Thread(target=server.serve_forever, name="scripted-model")
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

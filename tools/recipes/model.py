"""Serve a model that follows a script on loopback, for agents that run without a key.

It speaks OpenAI's protocol (chat completions and responses, without streaming), and of Anthropic's what Claude Code
uses.
"""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tools.recipes.messages import read_messages, stream_message
from tools.recipes.script import Role, ToolUse, Turn, decide, read_text

ROLES: Mapping[str, Role] = {"developer": "system", "system": "system", "assistant": "assistant", "tool": "tool"}
MESSAGES = "/v1/messages"


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
        path = urlsplit(self.path).path
        makers = {"/v1/chat/completions": make_completion, "/v1/responses": make_response}
        if path == MESSAGES and body.get("stream"):
            decision = self._decide(read_messages(body), body)
            self._send("text/event-stream", stream_message(body["model"], decision))
        elif path in makers and not body.get("stream"):
            decision = self._decide(read_turns(body), body)
            self._send("application/json", json.dumps(makers[path](body["model"], decision)))
        else:
            self.send_error(404, "not in the script")

    def _decide(self, turns: list[Turn], body: Mapping[str, Any]) -> ToolUse | str:
        decision = decide(turns, read_tools(body))
        if isinstance(decision, ToolUse):
            self.server.called.append(decision.name)
        return decision

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name is that of the base class)
        """Print nothing."""

    def _send(self, kind: str, answer: str) -> None:
        content = answer.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
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

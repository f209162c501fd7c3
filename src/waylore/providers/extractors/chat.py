"""Send chat requests to a language model within a budget: reserve before sending, settle after the answer.

Requests ask for JSON with a schema. If a server rejects the schema, later requests ask for any JSON object, then for
plain text. A request without a complete answer counts at its maximum cost. This module neither writes prompts nor
judges answers, and stores nothing.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from waylore.errors import ModelError
from waylore.protocols import CountTokens
from waylore.providers.endpoint import Endpoint, EndpointRefused, TransientError
from waylore.providers.extractors.budget import Ledger, Tokens
from waylore.providers.extractors.prompt import Message

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)
FORMATS = ("json_schema", "json_object", "text")
TEMPLATE_TOKENS = 16  # tokens that a server may add to a message
UNSUPPORTED_STATUS_CODES = frozenset({400, 422})


class BudgetUsedUp(ModelError):
    """The budget has no room for this call; use a larger one to continue."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The text that a model wrote, and whether it was cut off at the maximum number of tokens."""

    content: str
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Dialect:
    """The features of a request that a server supports: all of them, until it rejects one."""

    format: int = 0
    limit: str = "max_tokens"
    is_cold: bool = True

    def simplify(self, detail: str) -> "Dialect | None":
        """Return the dialect to try after a rejection with this detail, or None if there is no simpler one."""
        if "max_completion_tokens" in detail and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if "temperature" in detail and self.is_cold:
            return replace(self, is_cold=False)
        return replace(self, format=self.format + 1) if self.format + 1 < len(FORMATS) else None


class Chat:
    """A model that answers in JSON of a schema; threads may share it."""

    def __init__(
        self,
        endpoint: Endpoint,
        ledger: Ledger,
        *,
        model: str,
        schema: Mapping[str, Any],
        max_tokens: int,
        options: Mapping[str, Any],
        count: CountTokens,
    ) -> None:
        self._endpoint, self._ledger = endpoint, ledger
        self._count = lru_cache(maxsize=16)(count)  # the instructions are the same in every request
        self._model, self._schema, self._max_tokens, self._options = model, schema, max_tokens, options
        self._schema_tokens = count(json.dumps(schema))
        self._dialect = Dialect()
        self._count_factor = 1.0

    def estimate(self, messages: Sequence[Message]) -> Tokens:
        """Return the maximum cost of sending these messages once."""
        counted = sum(self._count(m["content"]) + TEMPLATE_TOKENS for m in messages) + self._schema_tokens
        return Tokens(int(counted * self._count_factor) + 1, self._max_tokens)

    def send(self, messages: Sequence[Message]) -> Reply:
        """Send messages and return the model's reply."""
        dialect, max_cost = self._dialect, self.estimate(messages)
        while True:
            try:
                body = self._build_body(messages, dialect)
                reply = self._endpoint.retry(partial(self._send_within_budget, body, max_cost))
            except EndpointRefused as error:
                simpler = dialect.simplify(error.detail) if error.status in UNSUPPORTED_STATUS_CODES else None
                if simpler is None:
                    raise
                dialect = simpler
            else:
                self._remember(dialect)
                return reply

    def _remember(self, dialect: Dialect) -> None:
        if dialect != self._dialect:
            log.warning("%s rejects parts of the request; requests now use %s", self._endpoint.url, dialect)
            self._dialect = dialect

    def _build_body(self, messages: Sequence[Message], dialect: Dialect) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "messages": list(messages),
            dialect.limit: self._max_tokens,
        }
        if dialect.is_cold:
            body["temperature"] = 0
        if FORMATS[dialect.format] == "json_schema":
            schema = {"name": "answer", "strict": True, "schema": self._schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif FORMATS[dialect.format] == "json_object":
            body["response_format"] = {"type": "json_object"}
        return {**body, **self._options}

    def _send_within_budget(self, body: Mapping[str, Any], max_cost: Tokens) -> Reply:
        """Send one request within the budget."""
        if not self._ledger.reserve(max_cost):
            raise BudgetUsedUp
        self._ledger.count("calls")
        cost = max_cost
        try:
            response = self._endpoint.post(body)
            reply = self._parse_reply(response)
            cost = self._read_cost(response, reply, max_cost)
        except TransientError as failure:
            cost = max_cost if failure.may_cost else Tokens()
            raise
        except EndpointRefused:
            cost = Tokens()
            raise
        finally:
            self._ledger.settle(max_cost, cost)
        return reply

    def _parse_reply(self, response: "httpx.Response") -> Reply:
        try:
            choice = response.json()["choices"][0]
            content = choice["message"].get("content") or choice["message"].get("refusal") or ""
            is_cut = choice.get("finish_reason") == "length"
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise self._endpoint.make_error(f"no answer: {response.text[:200]!r}") from error
        if not isinstance(content, str):
            raise self._endpoint.make_error(f"an answer that is not text: {str(content)[:200]!r}")
        return Reply(content, is_cut)

    def _read_cost(self, response: "httpx.Response", reply: Reply, max_cost: Tokens) -> Tokens:
        """Return the cost that the server reports, or the counted tokens if it reports none."""
        usage = response.json().get("usage")
        counts = usage if isinstance(usage, dict) else {}
        sent, answered = counts.get("prompt_tokens"), counts.get("completion_tokens")
        if not (isinstance(sent, int) and isinstance(answered, int) and sent >= 0 and answered >= 0):
            return Tokens(max_cost.sent, self._count(reply.content))
        self._count_factor = max(self._count_factor, self._count_factor * sent / max_cost.sent)
        return Tokens(sent, answered)

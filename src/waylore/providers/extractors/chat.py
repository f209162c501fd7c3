"""Questions to a language model, each paid for: reserved before it is sent, settled when it is answered.

It asks for JSON by a schema, and learns what a server does not understand of that: one that refuses the schema
is asked for any JSON object, then for plain text. An answer that never arrived whole counts as the most it may
have cost. It neither makes questions nor judges answers, and keeps nothing.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from waylore.errors import ModelError
from waylore.protocols import Count
from waylore.providers.endpoint import Endpoint, Passing, Refused
from waylore.providers.extractors.budget import Ledger, Tokens
from waylore.providers.extractors.prompt import Message

if TYPE_CHECKING:
    import httpx

log = logging.getLogger(__name__)
FORMATS = ("json_schema", "json_object", "text")
TEMPLATE = 16  # tokens that a server may put around a message
NOT_UNDERSTOOD = frozenset({400, 422})


class BudgetUsedUp(ModelError):
    """The budget has no room for this call; give a larger one to ask on."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model wrote, and whether it was cut off at the most tokens that it may write."""

    content: str
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a server understands of a request: all of it, until it refuses."""

    format: int = 0
    limit: str = "max_tokens"
    is_cold: bool = True

    def simpler(self, said: str) -> "Dialect | None":
        """What to try after a refusal that said this."""
        if "max_completion_tokens" in said and self.limit == "max_tokens":
            return replace(self, limit="max_completion_tokens")
        if "temperature" in said and self.is_cold:
            return replace(self, is_cold=False)
        return replace(self, format=self.format + 1) if self.format + 1 < len(FORMATS) else None


class Chat:
    """A model that answers in JSON of this schema; threads may share it."""

    def __init__(
        self,
        endpoint: Endpoint,
        ledger: Ledger,
        *,
        model: str,
        schema: Mapping[str, Any],
        max_tokens: int,
        options: Mapping[str, Any],
        count: Count,
    ) -> None:
        self._endpoint, self._ledger = endpoint, ledger
        self._count = lru_cache(maxsize=16)(count)  # instructions are the same in every question
        self._model, self._schema, self._max_tokens, self._options = model, schema, max_tokens, options
        self._schema_tokens = count(json.dumps(schema))
        self._dialect = Dialect()
        self._undercounted = 1.0

    def most(self, messages: Sequence[Message]) -> Tokens:
        """What asking this costs at most, if once."""
        counted = sum(self._count(m["content"]) + TEMPLATE for m in messages) + self._schema_tokens
        return Tokens(int(counted * self._undercounted) + 1, self._max_tokens)

    def ask(self, messages: Sequence[Message]) -> Reply:
        """What the model answers."""
        dialect, most = self._dialect, self.most(messages)
        while True:
            try:
                body = self._body(messages, dialect)
                reply = self._endpoint.tried(partial(self._paid, body, most))
            except Refused as error:
                simpler = dialect.simpler(error.said) if error.status in NOT_UNDERSTOOD else None
                if simpler is None:
                    raise
                dialect = simpler
            else:
                self._learn(dialect)
                return reply

    def _learn(self, dialect: Dialect) -> None:
        if dialect != self._dialect:
            log.warning(
                "%s does not understand all of the request; from now on %s", self._endpoint.url, dialect
            )
            self._dialect = dialect

    def _body(self, messages: Sequence[Message], dialect: Dialect) -> dict[str, Any]:
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

    def _paid(self, body: Mapping[str, Any], most: Tokens) -> Reply:
        """One call, within the budget."""
        if not self._ledger.reserve(most):
            raise BudgetUsedUp
        self._ledger.count("calls")
        spent = most
        try:
            answer = self._endpoint.post(body)
            reply = self._reply(answer)
            spent = self._spent(answer, reply, most)
        except Passing as failure:
            spent = most if failure.may_cost else Tokens()
            raise
        except Refused:
            spent = Tokens()
            raise
        finally:
            self._ledger.settle(most, spent)
        return reply

    def _reply(self, answer: "httpx.Response") -> Reply:
        try:
            choice = answer.json()["choices"][0]
            said = choice["message"].get("content") or choice["message"].get("refusal") or ""
            is_cut = choice.get("finish_reason") == "length"
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise self._endpoint.unusable(f"no answer but {answer.text[:200]!r}") from error
        if not isinstance(said, str):
            raise self._endpoint.unusable(f"no text but {str(said)[:200]!r}")
        return Reply(said, is_cut)

    def _spent(self, answer: "httpx.Response", reply: Reply, most: Tokens) -> Tokens:
        """What the server says it cost; where it does not say, what was counted."""
        usage = answer.json().get("usage")
        told = usage if isinstance(usage, dict) else {}
        sent, answered = told.get("prompt_tokens"), told.get("completion_tokens")
        if not (isinstance(sent, int) and isinstance(answered, int) and sent >= 0 and answered >= 0):
            return Tokens(most.sent, self._count(reply.content))
        self._undercounted = max(self._undercounted, self._undercounted * sent / most.sent)
        return Tokens(sent, answered)

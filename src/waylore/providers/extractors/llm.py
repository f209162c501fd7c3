"""Extract entities and facts with a language model, from any server that speaks OpenAI's chat protocol.

There is one call for each passage (`waylore.providers.extractors.prompt`). An answer of the wrong shape is shown to the
model once, with its error. If the second answer is wrong too, if the budget has no room, or if no answer comes,
`fallback` reads the passage without the model. Every such passage is counted by reason and logged. Declarations in
links, front matter and source code are extracted by rules. Answers are cached on disk (`waylore.providers.disk_cache`)
as the model wrote them, even unusable ones, so a second run makes no calls. This module does not resolve names across
passages.
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from waylore import text
from waylore.errors import ConfigError, ModelUnavailable
from waylore.indexing.extractors.rules import RuleExtractor
from waylore.indexing.extractors.structure import extract_structure
from waylore.protocols import CountTokens, Extraction, Extractor
from waylore.providers.disk_cache import ANSWERS, DiskCache
from waylore.providers.endpoint import Endpoint, EndpointRefused
from waylore.providers.extractors import answers, prompt
from waylore.providers.extractors.budget import UNLIMITED, Budget, Estimate, Ledger, Report, Tokens
from waylore.providers.extractors.chat import BudgetUsedUp, Chat, Reply
from waylore.providers.threads import map_in_context
from waylore.types.identity import identity
from waylore.types.knowledge import Document, Passage

log = logging.getLogger(__name__)
MAX_ANSWER_TOKENS = 2_048
KEYS_PER_READ = 500  # cached answers that an estimate reads at once
RESERVED_OPTIONS = frozenset("model messages max_tokens max_completion_tokens n stream".split())
MAX_UNANSWERED_PASSAGES = 5  # consecutive passages without an answer before the extractor stops
PERMANENT_STATUS_CODES = frozenset({401, 404})  # the server would reject every passage
MALFORMED, NO_BUDGET, NO_ANSWER = "malformed answer", "budget used up", "no answer"


class _FallBack(Exception):
    """A passage cannot be read with the model; the message is the counted reason."""


class LLMExtractor:
    """A model behind `{base_url}/chat/completions`; close it, or use it in a `with` block.

    At most `concurrency` calls run at a time, for any number of threads. `cache` is a directory for answers; without
    one they are cached in memory. `options` are added to every request, such as `{"reasoning_effort": "low"}`. `count`
    counts tokens for the budget; it may count too many, but not too few.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = "https://api.openai.com/v1",
        api_key: str = "",
        budget: Budget = UNLIMITED,
        cache: Path | None = None,
        fallback: Extractor | None = None,
        concurrency: int = 4,
        max_tokens: int = MAX_ANSWER_TOKENS,
        options: Mapping[str, Any] | None = None,
        timeout: float = 120.0,
        retries: int = 5,
        backoff: float = 0.5,
        count: CountTokens = text.count_pieces,
    ) -> None:
        if concurrency < 1 or max_tokens < 1:
            raise ConfigError("concurrency and max_tokens must be at least 1")
        if taken := RESERVED_OPTIONS & set(options or {}):
            raise ConfigError(f"options must not contain {', '.join(sorted(taken))}; the extractor sets them")
        self._endpoint = Endpoint(
            "chat/completions",
            model=model,
            base_url=base_url,
            api_key=api_key,
            timeout=timeout,
            retries=retries,
            backoff=backoff,
        )
        self._model, self._max_tokens, self._options = model, max_tokens, dict(options or {})
        self._budget, self._ledger = budget, Ledger(budget)
        self._chat = Chat(
            self._endpoint,
            self._ledger,
            model=model,
            schema=prompt.SCHEMA,
            max_tokens=max_tokens,
            options=self._options,
            count=count,
        )
        self._cache = DiskCache(ANSWERS, cache)
        self._fallback = fallback or RuleExtractor()
        self._fallback_slots = threading.BoundedSemaphore(self._fallback.concurrency)
        self._concurrency = concurrency
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="waylore-extract")
        self._unanswered_lock = threading.Lock()
        self._unanswered = 0

    @property
    def name(self) -> str:
        """The prompt's version and the model, with a fingerprint of the options if there are any."""
        plain = f"llm-{prompt.VERSION}:{self._model}"
        if not self._options and self._max_tokens == MAX_ANSWER_TOKENS:
            return plain
        return f"{plain}@{identity('options', repr(sorted(self._options.items())), str(self._max_tokens))[:8]}"

    @property
    def concurrency(self) -> int:
        """The number of documents at a time, equal to the number of calls, because a document may have one passage."""
        return self._concurrency

    @property
    def report(self) -> Report:
        """The results and the cost of all calls of this extractor."""
        return self._ledger.report

    def estimate(self, passages: Sequence[Passage]) -> Estimate:
        """Return the maximum cost for passages before anything is sent. Cached answers are free."""
        costs_by_key = [
            (self._make_key(p), self._chat.estimate(prompt.build_messages(p))) for p in passages if p.text.strip()
        ]
        keys = [key for key, _ in costs_by_key]
        cached = {
            key for i in range(0, len(keys), KEYS_PER_READ) for key in self._cache.read(keys[i : i + KEYS_PER_READ])
        }
        calls = [cost for key, cost in costs_by_key if key not in cached]
        tokens = sum(calls, Tokens())
        is_covered = self._budget.covers(self.report.tokens + tokens)
        money = self._budget.cost(tokens)
        return Estimate(len(passages), len(costs_by_key) - len(calls), len(calls), tokens, money, is_covered)

    def extract(self, document: Document, passages: Sequence[Passage]) -> Sequence[Extraction]:
        """Return the facts and names of each passage, in order."""
        extracted = map_in_context(self._pool, self._read, passages)
        unread = [passage for extraction, passage in zip(extracted, passages, strict=True) if extraction is None]
        fallbacks = iter(self._fall_back(document, unread))
        return [
            next(fallbacks) if extraction is None else _add_declared(extraction, document, passage)
            for extraction, passage in zip(extracted, passages, strict=True)
        ]

    def close(self) -> None:
        """Finish running calls, then stop the threads and close the connections and the cache."""
        self._pool.shutdown(cancel_futures=True)
        self._endpoint.close()
        self._cache.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, passage: Passage) -> Extraction | None:
        """Return the facts and names of a passage from the model's answer, or None if no answer is usable."""
        self._ledger.count("passages")
        if not passage.text.strip():
            return Extraction()
        try:
            extraction, dropped = answers.build_extraction(self._get_answer(passage), passage)
        except _FallBack as fallback:
            self._report_fallback(str(fallback), fallback.__cause__, passage)
            return None
        for reason, number in dropped.items():
            self._ledger.count("dropped", reason, number)
        return extraction

    def _fall_back(self, document: Document, passages: Sequence[Passage]) -> Sequence[Extraction]:
        if not passages:
            return ()
        with self._fallback_slots:
            return [replace(extraction, provisional=True) for extraction in self._fallback.extract(document, passages)]

    def _report_fallback(self, reason: str, cause: BaseException | None, passage: Passage) -> None:
        """Count and log a passage that the model did not read. The first of each reason is a warning."""
        level = logging.WARNING if self._ledger.count("fallback", reason) == 1 else logging.INFO
        where = f"passage {passage.position} of {passage.title or passage.document_id!r}"
        log.log(level, "%s is read by %s: %s (%s)", where, self._fallback.name, reason, cause)

    def _get_answer(self, passage: Passage) -> answers.ModelAnswer:
        """Return the cached answer, else the model's answer, else its repaired answer, and cache the original text."""
        key = self._make_key(passage)
        if cached := self._cache.read([key]):
            self._ledger.count("from_cache")
            return _parse_usable(cached[key].decode("utf-8", "surrogatepass"))
        messages = prompt.build_messages(passage)
        reply = self._send(messages)
        self._ledger.count("answered")
        if error := self._find_error(reply):
            reply = self._send(prompt.build_repair_messages(messages, reply.content, error))
        self._cache.write({key: reply.content.encode("utf-8", "surrogatepass")})
        answer = _parse_usable(reply.content)
        self._ledger.count("repaired", number=int(bool(error)))
        self._ledger.count("cut_off", number=int(reply.is_cut and not error))
        return answer

    def _find_error(self, reply: Reply) -> str:
        """Return the error to show the model if an answer has the wrong shape, else an empty text."""
        try:
            answers.parse_answer(reply.content)
        except answers.MalformedAnswer as error:
            if reply.is_cut:
                return f"it was cut off after {self._max_tokens} tokens; give fewer facts, the most important"
            return str(error)
        return ""

    def _send(self, messages: Sequence[prompt.Message]) -> Reply:
        """Return the model's reply. Fall back if none comes, and stop after several passages without one."""
        try:
            reply = self._chat.send(messages)
        except BudgetUsedUp as error:
            raise _FallBack(NO_BUDGET) from error
        except ModelUnavailable as error:
            if isinstance(error, EndpointRefused) and error.status in PERMANENT_STATUS_CODES:
                raise
            self._stop_if_unanswered(error)
            raise _FallBack(NO_ANSWER) from error
        with self._unanswered_lock:
            self._unanswered = 0
        return reply

    def _stop_if_unanswered(self, error: ModelUnavailable) -> None:
        with self._unanswered_lock:
            self._unanswered += 1
            if self._unanswered < MAX_UNANSWERED_PASSAGES:
                return
        raise ModelUnavailable(
            f"{error}\n{MAX_UNANSWERED_PASSAGES} passages in a row got no answer, so no more are sent. "
            "Run this again when the server answers; cached answers are not requested again"
        ) from error

    def _make_key(self, passage: Passage) -> bytes:
        contents = (message["content"] for message in prompt.build_messages(passage)[1:])
        return bytes.fromhex(identity("answer", self.name, *contents))


def _parse_usable(content: str) -> answers.ModelAnswer:
    try:
        return answers.parse_answer(content)
    except answers.MalformedAnswer as error:
        raise _FallBack(MALFORMED) from error


def _add_declared(extraction: Extraction, document: Document, passage: Passage) -> Extraction:
    """Add the declarations of a passage to the model's answer. The model's types of names take precedence."""
    declared = extract_structure(document, passage)
    types = {name: type_ for name, type_ in extraction.names.items() if type_}
    names = {**extraction.names, **declared.names, **types}
    return Extraction((*declared.facts, *extraction.facts), names, extraction.descriptions, extraction.aliases)

"""Names and claims through a language model, from any server that speaks OpenAI's chat protocol.

Each passage is asked about once (`waylore.providers.extractors.prompt`); an answer of the wrong shape is shown to the model
with what is wrong, once; after that the passage is read without the model, by `fallback`. So it is where the
budget has no room, or where no answer comes. Every such passage is counted by reason and logged. What links,
front matter and source code declare is found as without a model. Answers are kept on disk
(`waylore.providers.disk_cache`) as the model wrote them, good or not: a rerun asks nothing. It resolves no names across
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
from waylore.indexing.extractors.structure import structure
from waylore.protocols import Count, Extraction, Extractor
from waylore.providers.disk_cache import ANSWERS, Kept
from waylore.providers.endpoint import Endpoint, Refused
from waylore.providers.extractors import answers, prompt
from waylore.providers.extractors.budget import UNLIMITED, Budget, Estimate, Ledger, Report, Tokens
from waylore.providers.extractors.chat import BudgetUsedUp, Chat, Reply
from waylore.types.identity import identity
from waylore.types.knowledge import Document, Passage

log = logging.getLogger(__name__)
MOST_TOKENS = 2_048  # of an answer
BATCH = 500  # answers that an estimate looks up at once
OURS = frozenset("model messages max_tokens max_completion_tokens n stream".split())
UNANSWERED = 5  # passages without an answer, one after the other, after which nobody is asked any more
EVERYWHERE = frozenset({401, 404})  # what is refused for one passage for such a reason is refused for all
MALFORMED, NO_BUDGET, NO_ANSWER = "malformed answer", "budget used up", "no answer"


class _FellBack(Exception):
    """A passage cannot be read with the model; the message is the reason that is counted."""


class LLMExtractor:
    """A model behind `{base_url}/chat/completions`; close it, or use it in a `with` block.

    At most `concurrency` calls are under way, whatever number of threads extract. `cache` is a directory for
    answers; without one they are forgotten with the extractor. `options` are added to every request, such as
    `{"reasoning_effort": "low"}`. `count` counts tokens for the budget, rather too many than too few.
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
        max_tokens: int = MOST_TOKENS,
        options: Mapping[str, Any] | None = None,
        timeout: float = 120.0,
        retries: int = 5,
        backoff: float = 0.5,
        count: Count = text.pieces,
    ) -> None:
        if concurrency < 1 or max_tokens < 1:
            raise ConfigError("concurrency and max_tokens must be at least 1")
        if taken := OURS & set(options or {}):
            raise ConfigError(f"options cannot hold {', '.join(sorted(taken))}: the budget depends on them")
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
        self._kept = Kept(ANSWERS, cache)
        self._fallback = fallback or RuleExtractor()
        self._falling_back = threading.BoundedSemaphore(self._fallback.concurrency)
        self._concurrency = concurrency
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="waylore-extract")
        self._answering = threading.Lock()
        self._unanswered = 0

    @property
    def name(self) -> str:
        """The prompt's version and the model, with a fingerprint of the options where there are any."""
        plain = f"llm-{prompt.VERSION}:{self._model}"
        if not self._options and self._max_tokens == MOST_TOKENS:
            return plain
        return f"{plain}@{identity('options', repr(sorted(self._options.items())), str(self._max_tokens))[:8]}"

    @property
    def concurrency(self) -> int:
        """As many documents as calls: a document may have one passage only."""
        return self._concurrency

    @property
    def report(self) -> Report:
        """What came of asking, and what it cost, since this extractor was made."""
        return self._ledger.report

    def estimate(self, passages: Sequence[Passage]) -> Estimate:
        """What asking about these costs at most, before anything is sent; what is in the cache is free."""
        asked = [(self._key(p), self._chat.most(prompt.messages(p))) for p in passages if p.text.strip()]
        keys = [key for key, _ in asked]
        kept = {key for i in range(0, len(keys), BATCH) for key in self._kept.read(keys[i : i + BATCH])}
        calls = [most for key, most in asked if key not in kept]
        tokens = sum(calls, Tokens())
        is_covered = self._budget.covers(self.report.tokens + tokens)
        money = self._budget.cost(tokens)
        return Estimate(len(passages), len(asked) - len(calls), len(calls), tokens, money, is_covered)

    def extract(self, document: Document, passages: Sequence[Passage]) -> Sequence[Extraction]:
        """What each passage says, in order."""
        read = list(self._pool.map(self._read, passages))
        missed = [passage for said, passage in zip(read, passages, strict=True) if said is None]
        instead = iter(self._without_model(document, missed))
        return [
            next(instead) if said is None else _with_declared(said, document, passage)
            for said, passage in zip(read, passages, strict=True)
        ]

    def close(self) -> None:
        """Finish what is under way and let go of threads, connections and the file of answers."""
        self._pool.shutdown(cancel_futures=True)
        self._endpoint.close()
        self._kept.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, passage: Passage) -> Extraction | None:
        """What a passage says by the model's answer; `None` where there is none that can be used."""
        self._ledger.count("passages")
        if not passage.text.strip():
            return Extraction()
        try:
            said, dropped = answers.extraction(self._answer(passage), passage)
        except _FellBack as why:
            self._tell(str(why), why.__cause__, passage)
            return None
        for reason, number in dropped.items():
            self._ledger.count("dropped", reason, number)
        return said

    def _without_model(self, document: Document, passages: Sequence[Passage]) -> Sequence[Extraction]:
        if not passages:
            return ()
        with self._falling_back:
            return [replace(s, provisional=True) for s in self._fallback.extract(document, passages)]

    def _tell(self, reason: str, cause: BaseException | None, passage: Passage) -> None:
        """Count and log a passage that the model did not read: the first of a kind as a warning."""
        level = logging.WARNING if self._ledger.count("fell_back", reason) == 1 else logging.INFO
        where = f"passage {passage.position} of {passage.title or passage.document_id!r}"
        log.log(level, "%s is read by %s: %s (%s)", where, self._fallback.name, reason, cause)

    def _answer(self, passage: Passage) -> answers.Answer:
        """The kept answer, else the model's, else its repaired one; kept as the model wrote it."""
        key = self._key(passage)
        if kept := self._kept.read([key]):
            self._ledger.count("from_cache")
            return _usable(kept[key].decode("utf-8", "surrogatepass"))
        asked = prompt.messages(passage)
        reply = self._ask(asked)
        self._ledger.count("answered")
        if error := self._wrong(reply):
            reply = self._ask(prompt.repair(asked, reply.content, error))
        self._kept.write({key: reply.content.encode("utf-8", "surrogatepass")})
        answer = _usable(reply.content)
        self._ledger.count("repaired", number=int(bool(error)))
        self._ledger.count("cut_off", number=int(reply.is_cut and not error))
        return answer

    def _wrong(self, reply: Reply) -> str:
        """What to tell the model of an answer that has not the right shape; nothing if it has."""
        try:
            answers.parsed(reply.content)
        except answers.Malformed as error:
            if reply.is_cut:
                return f"it was cut off after {self._max_tokens} tokens; give fewer facts, the most important"
            return str(error)
        return ""

    def _ask(self, messages: Sequence[prompt.Message]) -> Reply:
        """The model's answer; gives up on the passage where there is none, and on the server after a few."""
        try:
            reply = self._chat.ask(messages)
        except BudgetUsedUp as error:
            raise _FellBack(NO_BUDGET) from error
        except ModelUnavailable as error:
            if isinstance(error, Refused) and error.status in EVERYWHERE:
                raise
            self._give_up_after_a_few(error)
            raise _FellBack(NO_ANSWER) from error
        with self._answering:
            self._unanswered = 0
        return reply

    def _give_up_after_a_few(self, error: ModelUnavailable) -> None:
        with self._answering:
            self._unanswered += 1
            if self._unanswered < UNANSWERED:
                return
        raise ModelUnavailable(
            f"{error}\n{UNANSWERED} passages in a row got no answer, so no more are sent. Run this again when "
            "the server answers: what is in the cache is not asked again."
        ) from error

    def _key(self, passage: Passage) -> bytes:
        asked = (message["content"] for message in prompt.messages(passage)[1:])
        return bytes.fromhex(identity("answer", self.name, *asked))


def _usable(content: str) -> answers.Answer:
    try:
        return answers.parsed(content)
    except answers.Malformed as error:
        raise _FellBack(MALFORMED) from error


def _with_declared(said: Extraction, document: Document, passage: Passage) -> Extraction:
    """What the model says and what the passage declares; a name's type is the model's, if it has one."""
    declared = structure(document, passage)
    types = {name: type_ for name, type_ in said.names.items() if type_}
    names = {**said.names, **declared.names, **types}
    return Extraction((*declared.claims, *said.claims), names, said.descriptions, said.aliases)

"""Ask a language model each question once for each context, and keep its answers by model and prompt."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

from benchmarks.answers.questions import CONTEXTS, AskedQuestion
from waylore.providers.disk_cache import DiskCache
from waylore.providers.endpoint import Endpoint
from waylore.providers.extractors.budget import UNLIMITED, Ledger
from waylore.providers.extractors.chat import Chat
from waylore.providers.extractors.prompt import Message
from waylore.text import estimate_tokens
from waylore.types.identity import identity

INSTRUCTIONS = "Answer the question in a few words. Write only the answer, without a sentence around it."
MAX_ANSWER_TOKENS = 32
TIMEOUT_SECONDS = 1_800.0  # a small machine reads a thousand tokens in half a minute
RETRIES = 5
BACKOFF_SECONDS = 0.5
PLAIN_TEXT = {"response_format": {"type": "text"}}

Answers = Mapping[str, str]  # by name of the context


def build_messages(question: AskedQuestion, context: str) -> list[Message]:
    """Return the messages that ask a question with one of its contexts."""
    asked = "\n\n".join(filter(None, (question.contexts[context], f"Question: {question.text}\nAnswer:")))
    return [{"role": "system", "content": INSTRUCTIONS}, {"role": "user", "content": asked}]


def make_key(model: str, messages: Sequence[Message]) -> bytes:
    """Return the key of an answer in the cache."""
    return bytes.fromhex(identity("answer", model, *(message["content"] for message in messages)))


@contextmanager
def open_chat(model: str, base_url: str, api_key: str) -> Iterator[Chat]:
    """Connect to a model that answers in plain text."""
    endpoint = Endpoint(
        "chat/completions",
        model=model,
        base_url=base_url,
        api_key=api_key,
        timeout=TIMEOUT_SECONDS,
        retries=RETRIES,
        backoff=BACKOFF_SECONDS,
    )
    with closing(endpoint):
        yield Chat(
            endpoint,
            Ledger(UNLIMITED),
            model=model,
            schema={},
            max_tokens=MAX_ANSWER_TOKENS,
            options=PLAIN_TEXT,
            count=estimate_tokens,
        )


def ask_missing(chat: Chat, model: str, cache: DiskCache, asked: Sequence[AskedQuestion], *, parallel: int) -> None:
    """Ask what the cache has no answer to, so many prompts at the same time, and print the answers."""
    prompts = {
        make_key(model, messages): (f"{number}/{len(asked)} {question.set}, {context}", messages)
        for number, question in enumerate(asked, 1)
        for context in CONTEXTS
        for messages in [build_messages(question, context)]
    }
    missing = [(key, *prompt) for key, prompt in prompts.items() if not cache.read([key])]
    with ThreadPoolExecutor(parallel) as threads:
        for sent in (missing[start : start + parallel] for start in range(0, len(missing), parallel)):
            began = time.perf_counter()
            replies = list(threads.map(lambda prompt: chat.send(prompt[-1]).content, sent))
            for (key, name, _), reply in zip(sent, replies, strict=True):
                cache.write({key: reply.encode("utf-8", "surrogatepass")})
                print(f"{name}: {reply!r}")
            print(f"  {time.perf_counter() - began:.1f} s", flush=True)


def read_answered(
    model: str, cache: DiskCache, asked: Iterable[AskedQuestion]
) -> Iterator[tuple[AskedQuestion, Answers]]:
    """Yield the questions that were answered with every context, and the answers: the first line of each."""
    for question in asked:
        keys = {context: make_key(model, build_messages(question, context)) for context in CONTEXTS}
        known = cache.read(list(keys.values()))
        if known.keys() >= set(keys.values()):
            yield question, {context: _take_line(known[key]) for context, key in keys.items()}


def _take_line(answer: bytes) -> str:
    return answer.decode("utf-8", "surrogatepass").strip().partition("\n")[0]

"""Forget documents over HTTP in a process that kills itself at some place, and send the request again in another.

    python tests/faults/crash_forgetter.py STORE PLACES

A place is a number of calls of Python functions, counted in all threads: half of the places since the request
began, half since it was committed. The first run counts the calls before the commit. For each place it prints one
line of JSON: what the store had after the kill, and both answers to the same request afterwards.
"""

import asyncio
import json
import os
import signal
import sys
import threading
import traceback
from itertools import count
from types import FrameType
from typing import Any

import httpx

from surfaces.serving import create_client, create_token, make_settings, start_app
from waylore import Waylore
from waylore.deadline import Deadline
from waylore.providers.embedders.hashing import HashingEmbedder

DOCUMENTS = 30


def open_collection(store: str, collection: str) -> Waylore:
    return Waylore.open(store, collection=collection, embedder=HashingEmbedder(quiet=True))


class Calls:
    """Counts the calls of Python functions, and kills this process at one of them."""

    def __init__(self, before: int = -1, after: int = -1) -> None:
        self.before, self.after = count(), count()
        self.places = (before, after)
        self.has_begun = self.is_committed = False

    def look(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and self.has_begun:
            self.is_committed |= frame.f_code is Deadline._record_commit.__code__
            calls, place = (self.after, self.places[1]) if self.is_committed else (self.before, self.places[0])
            if next(calls) == place:
                os.kill(os.getpid(), signal.SIGKILL)


def run_child(store: str, token: str, collection: str, ids: list[str], calls: Calls) -> int:
    """Send the request in a child process, and return the calls before its commit; 0 if it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(writing, str(asyncio.run(forget_counted(store, token, collection, ids, calls))).encode())
        except BaseException:  # noqa: BLE001 (the child must not go on as its parent)
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        counted = int(answer.read() or 0)
    _, ended = os.waitpid(child, 0)
    assert os.WIFSIGNALED(ended) or os.WEXITSTATUS(ended) == 0
    return counted


async def forget_counted(store: str, token: str, collection: str, ids: list[str], calls: Calls) -> int:
    threading.setprofile(calls.look)
    sys.setprofile(calls.look)
    async with start_app(make_settings(store)) as app, create_client(app, token) as asked:
        (await asked.get(f"/v1/collections/{collection}/stats")).raise_for_status()  # opens it
        calls.has_begun = True
        done = await forget(asked, collection, ids)
        calls.has_begun = False
        assert done.status_code == 200, done.text
        return next(calls.before)


async def forget(asked: httpx.AsyncClient, collection: str, ids: list[str]) -> httpx.Response:
    word = {"Idempotency-Key": collection}
    return await asked.post(f"/v1/collections/{collection}/documents/forget", json={"documents": ids}, headers=word)


async def repeat(store: str, token: str, collection: str, ids: list[str]) -> dict[str, Any]:
    """Add a document that the request named, and send the request twice, when its claim has expired."""
    async with start_app(make_settings(store)) as app, create_client(app, token) as asked:
        with open_collection(store, collection) as waylore:
            left = sorted(document.id for document in waylore.documents())
            added = list(waylore.add_facts([("Node 0", "knows", "Node 1")])) if not left else []
        app.state.service.registry.delete_expired_responses(2e12)
        answers = [await forget(asked, collection, ids) for _ in range(2)]
        with open_collection(store, collection) as waylore:
            kept = [document.id for document in waylore.documents()]
    assert [one.status_code for one in answers] == [200, 200], [one.text for one in answers]
    receipts = [one.json() for one in answers]
    return {"left": left, "added": added, "kept": kept, "receipts": receipts}


def prepare(store: str, token: str, collection: str) -> list[str]:
    async def register() -> None:
        async with start_app(make_settings(store)) as app, create_client(app, token) as asked:
            (await asked.put(f"/v1/collections/{collection}", json={})).raise_for_status()

    asyncio.run(register())
    with open_collection(store, collection) as waylore:
        return list(waylore.add_facts([(f"Node {n}", "knows", f"Node {n + 1}") for n in range(DOCUMENTS)]))


def main(store: str, places: int) -> None:
    """Kill the request at a number of places."""
    token = create_token(store)
    total = run_child(store, token, "first", prepare(store, token, "first"), Calls())
    half = places // 2
    chosen = [Calls(before=total * number // half) for number in range(half)]
    chosen += [Calls(after=2**number - 1) for number in range(half)]
    for number, calls in enumerate(chosen):
        collection = f"place-{number}"
        ids = prepare(store, token, collection)
        counted = run_child(store, token, collection, ids, calls)
        print(json.dumps({"counted": counted, "ids": ids, **asyncio.run(repeat(store, token, collection, ids))}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

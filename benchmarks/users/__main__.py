"""Measure what a search and `remember` cost with many users, and with a user of many turns, in processor time.

    python -m benchmarks.users --data ../shared/data --embedder model2vec --model .cache/models/potion
        --users 1000 --turns 1000 --growth 1000 10000 100000 --folder DIR

The turns are LoCoMo's, multiplied (`benchmarks.users.talk`). Two tables for each engine:

- Many users: a search for one user in a store of all users, compared with a store that holds this user alone.
- One user: a search, its vector search, the rest of it, and `remember` of one turn, by the number of the user's turns.

A figure is the processor time of this process and of the PostgreSQL server, in milliseconds a call: the least of
several rounds that alternate between the stores, so that a busy machine changes it little. Embedding is left out: the
question is embedded before. Stores stay in the folder for later runs; a run that was interrupted goes on.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
from psycopg import sql
from tools.postgres.builds import find_plain_build
from tools.postgres.server import FAST_SETTINGS, Server, start_persistent_server

from benchmarks.tenants.measure import read_server_seconds
from benchmarks.users.talk import Talk
from waylore.engine.waylore import Waylore
from waylore.evaluation.index import add_embedder_options, create_embedder
from waylore.recipes import RECIPES
from waylore.retrieval.search import search
from waylore.store.urls import open_store
from waylore.types.search import Filter, Query

METHODS = ("hybrid", "conversation", "chain")
TOP_K = 80  # of the vector search of a search
MEASURED_USERS = 3
ROUNDS = 5
REMEMBERED = 10  # turns that are remembered one by one
SETTINGS = {**FAST_SETTINGS, "shared_buffers": "2GB", "work_mem": "64MB", "random_page_cost": "1.1"}


@dataclass
class Engine:
    """A place for stores: a folder of files, or a server."""

    folder: Path
    server: Server | None = None

    @property
    def name(self) -> str:
        return "PostgreSQL" if self.server else "SQLite"

    def read_seconds(self) -> float:
        """Return the processor seconds of this process and of the server so far."""
        return time.process_time() + (read_server_seconds(self.server) if self.server else 0.0)

    def get_url(self, name: str) -> str:
        """Return the address of a store; create its database if it does not exist."""
        if self.server is None:
            return str(self.folder / f"{name}.waylore")
        with psycopg.connect(self.server.url, autocommit=True) as db:
            if not db.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
                db.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.server.build_url(name)

    def analyze(self, name: str) -> None:
        """Let the planner of a server know the tables."""
        if self.server:
            with psycopg.connect(self.server.build_url(name), autocommit=True) as db:
                db.execute("VACUUM ANALYZE")


def name_user(number: int) -> str:
    """Return the name of a user."""
    return f"user {number}"


@contextmanager
def open_filled(engine: Engine, talk: Talk, name: str, users: Sequence[str], turns: int) -> Iterator[Waylore]:
    """Open a store, after writing what it lacks of the turns of users."""
    url = engine.get_url(name)
    store = open_store(url, "default")
    try:
        if store.statistics().passages < len(users) * turns:
            for written in talk.write(store, users, turns):
                print(f"\r{engine.name} {name}: {written:,} turns", end="", file=sys.stderr, flush=True)
            print(file=sys.stderr)
            engine.analyze(name)
    finally:
        store.close()
    with Waylore.open(url, embedder=talk.embedder, extractor=talk.extractor, cache=None) as memory:
        yield memory


def run_search(memory: Waylore, user: str, query: Query, method: str) -> object:
    """Search for a user, as `Waylore.search` does, with the vector of the question at hand."""
    now = memory.now()
    asked = replace(query, where=Filter(user=user, now=now), as_of=now)
    return search(memory._store, None, asked, RECIPES[method], now=now)


def run_dense(memory: Waylore, user: str, query: Query) -> object:
    """Search for vectors alone."""
    assert query.vector is not None
    return memory._store.dense(query.vector, top_k=TOP_K, where=Filter(user=user, now=memory.now()))


def measure(engine: Engine, calls: Mapping[str, Sequence[Callable[[], object]]]) -> dict[str, float]:
    """Run series of calls in turn, and return the least processor milliseconds of a call of each series."""
    least = dict.fromkeys(calls, float("inf"))
    for number in range(ROUNDS + 1):
        for name, series in calls.items():
            begun = engine.read_seconds()
            for call in series:
                call()
            spent = 1000 * (engine.read_seconds() - begun) / len(series)
            least[name] = min(least[name], spent) if number else least[name]  # the first round prepares statements
    return least


def compare_users(engine: Engine, talk: Talk, queries: Sequence[Query], users: int, turns: int) -> None:
    """Print what a search for a user costs beside all others, and alone."""
    named = [name_user(number) for number in range(users)]
    chosen = named[:: max(users // MEASURED_USERS, 1)][:MEASURED_USERS]
    with ExitStack() as stack:
        many = stack.enter_context(open_filled(engine, talk, f"users_{users}_{turns}", named, turns))
        alone = {
            user: stack.enter_context(
                open_filled(engine, talk, f"alone_{user.replace(' ', '_')}_{turns}", [user], turns)
            )
            for user in chosen
        }
        print(f"\n{engine.name}, {users:,} users of {turns:,} turns; a search for one user, ms")
        print(f"{'':14}{'all users':>12}{'alone':>10}{'ratio':>8}")
        for method in (*METHODS, "vectors"):
            run = run_dense if method == "vectors" else partial(run_search, method=method)
            calls = {
                "all users": [partial(run, many, user, query) for user in chosen for query in queries],
                "alone": [partial(run, alone[user], user, query) for user in chosen for query in queries],
            }
            taken = measure(engine, calls)
            ratio = taken["all users"] / taken["alone"]
            print(f"{method:14}{taken['all users']:12.2f}{taken['alone']:10.2f}{ratio:8.2f}", flush=True)


def compare_sizes(engine: Engine, talk: Talk, queries: Sequence[Query], sizes: Sequence[int]) -> None:
    """Print what a search and `remember` cost by the number of turns of a user."""
    user = name_user(0)
    with ExitStack() as stack:
        stores = {
            size: stack.enter_context(open_filled(engine, talk, f"growth_{size}", [user], size)) for size in sizes
        }
        searched = measure(
            engine,
            {
                f"{m} {n}": [partial(run_search, s, user, q, m) for q in queries]
                for m in METHODS
                for n, s in stores.items()
            },
        )
        vectors = measure(
            engine, {str(n): [partial(run_dense, s, user, q) for q in queries] for n, s in stores.items()}
        )
        writer = iter(range(10_000_000, 20_000_000))
        remembered = measure(
            engine, {str(n): [partial(remember_turn, s, talk, user, writer)] * REMEMBERED for n, s in stores.items()}
        )
    print(f"\n{engine.name}, one user; ms, and as a share of the smallest")
    head = [f"{m}{part}" for m in METHODS for part in ("", " - vectors")]
    print(f"{'turns':>10}" + "".join(f"{name:>26}" for name in ("vectors", *head, "remember")))
    first = sizes[0]
    for size in sizes:
        cells = [(vectors[str(size)], vectors[str(first)])]
        for method in METHODS:
            here, there = searched[f"{method} {size}"], searched[f"{method} {first}"]
            cells += [(here, there), (here - vectors[str(size)], there - vectors[str(first)])]
        cells.append((remembered[str(size)], remembered[str(first)]))
        print(f"{size:>10,}" + "".join(f"{a:>18.2f} {a / b:>6.2f}x" for a, b in cells), flush=True)


def remember_turn(memory: Waylore, talk: Talk, user: str, places: Iterator[int]) -> object:
    """Remember a new turn in a session."""
    place = next(places)
    return memory.remember(talk.make_messages(user, place, 1), user=user, session=f"new {place // 25}")


@contextmanager
def open_engine(name: str, folder: Path) -> Iterator[Engine]:
    """Yield the place for the stores of an engine."""
    folder.mkdir(parents=True, exist_ok=True)
    if name == "sqlite":
        yield Engine(folder)
        return
    with start_persistent_server(find_plain_build(), folder / "server", settings=SETTINGS) as server:
        yield Engine(folder, server)


def main() -> None:
    """Write missing stores, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--users", type=int, default=1_000, help="number of users; 0 leaves this table out")
    parser.add_argument("--turns", type=int, default=1_000, help="turns of each user")
    parser.add_argument("--growth", type=int, nargs="*", default=[1_000, 10_000, 100_000], help="turns of one user")
    parser.add_argument("--questions", type=int, default=40, help="number of questions")
    parser.add_argument("--engines", nargs="+", choices=["sqlite", "postgres"], default=["sqlite", "postgres"])
    add_embedder_options(parser)
    options = parser.parse_args()
    talk = Talk(options.data, create_embedder(options))
    asked = talk.questions[:: max(len(talk.questions) // options.questions, 1)][: options.questions]
    queries = [Query(text, talk.embedder.embed_query(text)) for text in asked]
    with TemporaryDirectory() as temporary:
        for name in options.engines:
            with open_engine(name, options.folder or Path(temporary)) as engine:
                if options.users:
                    compare_users(engine, talk, queries, options.users, options.turns)
                if options.growth:
                    compare_sizes(engine, talk, queries, options.growth)


if __name__ == "__main__":
    main()

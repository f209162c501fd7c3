"""Compare peers from the command line.

python -m benchmarks.peers prepare musique DIR --data ../shared/data
python -m benchmarks.peers run lightrag musique DIR --model .cache/models/bge-small
python -m benchmarks.peers faults lightrag DIR --model .cache/models/bge-small
python -m benchmarks.peers table DIR --json benchmarks/plots/results/peers.json

Every command continues where it stopped. `serve` answers on loopback until Ctrl-C, to try a peer by hand.
"""

import argparse
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from benchmarks.peers.adapters.frame import ANSWERS, INDEXED
from benchmarks.peers.environments import PEERS
from benchmarks.peers.faults import SET, count_rows, read_results, run_faults, write_fault_set
from benchmarks.peers.measure import PeerFailed, Place, run_phase
from benchmarks.peers.scripted import script_chat
from benchmarks.peers.server import ModelServer, start_server
from benchmarks.peers.sets import PeerSet, cut_set, read_set, read_source, write_set
from benchmarks.peers.table import format_faults, format_tables, list_scores
from benchmarks.plots.results import write_peers
from waylore.evaluation.contexts.measure import choose_counter
from waylore.evaluation.index import load_embedder
from waylore.providers.embedders.cached import CachedEmbedder

FAULT_BATCH = 25


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command."""
    options = build_parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        options.command(options)
    except PeerFailed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    commands = parser.add_subparsers(required=True)
    prepare = commands.add_parser("prepare", help="write a set")
    prepare.set_defaults(command=run_prepare)
    prepare.add_argument("set")
    prepare.add_argument("--part-of", metavar="SET", help="take a part of a set that is already in DIR")
    prepare.add_argument("--questions", type=int, default=30, metavar="N", help="questions of a part")
    prepare.add_argument("--passages", type=int, default=300, metavar="N", help="passages of a part")
    prepare.add_argument("--data", type=Path, default=Path("../shared/data"))
    prepare.add_argument("--folders", type=Path, default=Path("../shared/folders"))
    serve = commands.add_parser("serve", help="answer on loopback")
    serve.set_defaults(command=run_serve)
    serve.add_argument("set")
    peer = commands.add_parser("run", help="let a peer index a set and answer its questions")
    peer.set_defaults(command=run_peer)
    peer.add_argument("peer", choices=PEERS)
    peer.add_argument("set")
    faults = commands.add_parser("faults", help="kill a peer while it indexes, and delete a passage")
    faults.set_defaults(command=run_fault_test)
    faults.add_argument("peer", choices=PEERS)
    table = commands.add_parser("table", help="print the figures")
    table.set_defaults(command=print_tables)
    table.add_argument("--json", type=Path, metavar="FILE", help="file for the figures, of which plots are made")
    for each in (serve, peer, faults):
        each.add_argument("--model", type=Path, help="folder of the weights of bge-small")
        each.add_argument("--embedder", default="fastembed", choices=("fastembed", "hashing"))
    for each in (prepare, serve, peer, faults, table):
        each.add_argument("folder", type=Path, metavar="DIR")
    return parser


def run_prepare(options: argparse.Namespace) -> None:
    """Write a set to DIR."""
    if options.part_of:
        whole = read_set(options.folder / "sets" / options.part_of)
        found = cut_set(whole, options.set, options.questions, options.passages)
    else:
        found = read_source(options.set, options.data, options.folders)
    write_set(found, options.folder / "sets" / options.set)
    print(f"{found.name}: {len(found.passages)} passages, {len(found.questions)} questions")


def run_serve(options: argparse.Namespace) -> None:
    """Serve vectors and the chat of a set until Ctrl-C."""
    with suppress(KeyboardInterrupt), serve_set(options, read_set(options.folder / "sets" / options.set)) as server:
        print(server.url, flush=True)
        signal.pause()


@contextmanager
def serve_set(options: argparse.Namespace, found: PeerSet) -> Iterator[ModelServer]:
    """Serve the vectors and the chat of a set."""
    embedder = load_embedder(options.embedder, options.model)
    questions = frozenset(question.asked.text.strip() for question in found.questions)
    with (
        CachedEmbedder(embedder, options.folder / "vectors") as cached,
        start_server(cached, questions, script_chat(found.passages), choose_counter()[0]) as server,
    ):
        yield server


def run_peer(options: argparse.Namespace) -> None:
    """Let a peer index a set and answer its questions."""
    place = Place(options.folder.resolve(), options.set, options.peer)
    found = read_set(place.set_folder)
    with serve_set(options, found) as server:
        for phase, file, wanted in (("index", INDEXED, found.passages), ("ask", ANSWERS, found.questions)):
            if count_rows(place.work / file) < len(wanted):
                costs = run_phase(place, phase, server)
                print(f"{options.peer} {options.set} {phase}: {costs.wall:.1f} s, {costs.memory >> 20} MB", flush=True)


def run_fault_test(options: argparse.Namespace) -> None:
    """Kill a peer while it indexes, and delete a passage."""
    place = Place(options.folder.resolve(), SET, options.peer, batch=FAULT_BATCH)
    found = write_fault_set(place.folder)
    shutil.rmtree(place.work, ignore_errors=True)
    with serve_set(options, replace(found, questions=())) as server:
        print(run_faults(place, found, server))


def print_tables(options: argparse.Namespace) -> None:
    """Print the figures of all peers."""
    folder = options.folder.resolve()
    scored = list_scores(folder, choose_counter()[0])
    print(format_tables(scored))
    print(f"\n{format_faults(read_results(folder))}")
    if options.json:
        write_peers(options.json, scored)


if __name__ == "__main__":
    sys.exit(main())

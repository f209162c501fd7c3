"""Waylore's hybrid search, which does not use the graph."""

from functools import partial

from benchmarks.peers.adapters.frame import run
from benchmarks.peers.adapters.ours import open_peer

if __name__ == "__main__":
    run(partial(open_peer, method="hybrid"))

"""Write the figures of all peers as Markdown tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.peers.environments import PEERS
from benchmarks.peers.faults import SET, FaultResult
from benchmarks.peers.measure import Place
from benchmarks.peers.scores import PeerScores, score_peer
from benchmarks.peers.sets import read_set
from waylore.protocols import CountTokens

QUALITY = "| peer | R@5 | 95 % | answer in 1,000 tokens | in its own context |\n|---|---|---|---|---|"
COSTS = (
    "| peer | indexing | processor | texts embedded | model calls (tokens) | a query | memory | disk | install |\n"
    "|---|---|---|---|---|---|---|---|---|"
)
FAULTS = (
    "| peer | stored passages found after kill -9 | found after going on | deleted from search | "
    "the deleted word is still in | problem |\n|---|---|---|---|---|---|"
)
MEGABYTE = 1 << 20


def list_scores(folder: Path, count: CountTokens) -> dict[str, list[PeerScores]]:
    """Return the figures of every peer that has answered a set, by set, in the order of the list of peers."""
    names = [path.name for path in sorted((folder / "runs").iterdir())]
    sets = [name for name in names if name != SET and (folder / "sets" / name).exists()]
    found = {name: read_set(folder / "sets" / name) for name in sets}
    places = [(name, Place(folder, name, peer)) for name in sets for peer in PEERS]
    scored = [(name, score_peer(place, found[name], count)) for name, place in places if found[name].questions]
    return {name: [scores for each, scores in scored if each == name and scores] for name in sets}


def format_tables(scored: Mapping[str, Sequence[PeerScores]]) -> str:
    """Return a table of quality and one of costs for each set."""
    return "\n\n".join(part for name, rows in scored.items() if rows for part in _format_set(name, rows))


def _format_set(name: str, rows: Sequence[PeerScores]) -> Iterator[str]:
    yield f"### {name}"
    yield "\n".join([QUALITY, *map(_format_quality, rows)])
    yield "\n".join([COSTS, *map(_format_costs, rows)])


def _format_quality(row: PeerScores) -> str:
    cells = [
        PEERS[row.peer].title,
        f"{100 * row.recall.mean:.1f}",
        f"{100 * row.recall.low:.1f}–{100 * row.recall.high:.1f}",
        _format_share(row.answered),
        _format_share(row.own) if row.own is not None else "",
    ]
    return _join(cells)


def _format_share(share: float) -> str:
    return f"{share:.2f}".removeprefix("0")


def _format_costs(row: PeerScores) -> str:
    cells = [
        PEERS[row.peer].title,
        f"{row.index_seconds:.0f} s",
        f"{row.index_processor:.0f} s",
        f"{row.texts:,}",
        f"{row.calls:,} ({row.tokens:,})" if row.calls else "0",
        f"{1000 * row.query_seconds:.0f} ms",
        f"{row.memory / MEGABYTE:.0f} MB",
        f"{row.disk / MEGABYTE:.0f} MB",
        f"{row.install / MEGABYTE:,.0f} MB",
    ]
    return _join(cells)


def format_faults(results: Iterable[FaultResult]) -> str:
    """Return a table of what happened after a kill and a deletion."""
    rows = sorted(results, key=lambda result: list(PEERS).index(result.peer))
    return "\n".join([FAULTS, *map(_format_fault, rows)])


def _format_fault(result: FaultResult) -> str:
    kept = result.acknowledged - result.lost
    cells = [
        PEERS[result.peer].title,
        f"{kept} of {result.acknowledged}",
        f"{result.found_at_end} of {result.passages}",
        {None: "cannot", True: "yes", False: "no"}[result.is_deleted],
        ", ".join(f"`{file}`" for file in result.left) or ("nothing" if result.is_deleted is not None else ""),
        result.problem,
    ]
    return _join(cells)


def _join(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"

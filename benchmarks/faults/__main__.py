"""Does every fault to real servers under load, and prints what callers saw.

    python -m benchmarks.faults              all of them, about ten minutes
    python -m benchmarks.faults killed cut   some of them
    python -m benchmarks.faults --sample     all of them, small

Errors are counted by kind, with the kind of their cause. Lost is what was acknowledged and is not there in the end;
wrong is an answer with another text than was written, one that leaves out what must be found and does not say
so, or a difference to a quiet SQLite store with the same documents. Both must be 0. Recovered is how many seconds
after the end of the fault requests were answered again and none failed any more.
"""

import argparse
import logging
import sys
from collections.abc import Callable, Mapping

from benchmarks.faults import cells, moving, servers
from benchmarks.faults.load import Report
from benchmarks.faults.servers import FULL, SAMPLE, Size
from benchmarks.faults.threads import crowded, exhausted

FAULTS: Mapping[str, Callable[[Size], Report]] = {
    "killed": servers.killed,
    "away": servers.away,
    "cut": servers.cut,
    "terminated": servers.terminated,
    "full_disk": servers.full_disk,
    "full_server": servers.full_server,
    "hanging": cells.hanging,
    "gone": cells.gone,
    "late": cells.late,
    "slow": cells.slow,
    "moved": moving.moved,
    "mover_killed": moving.mover_killed,
}
CROWD = "threads"


def row(report: Report) -> str:
    """A line of the table."""
    errors = ", ".join(f"{number} {kind}" for kind, number in sorted(report.errors.items())) or "none"
    return (
        f"| {report.fault} | {len(report.requests)} | {report.rate:.0f} | {errors} | {report.partial} | "
        f"{len(report.settled.lost)} | {len(report.wrong)} | {report.recovered:.1f} |"
    )


def tell_crowd(size: Size) -> bool:
    """Throughput by number of threads, connections, and what one is told who finds none free."""
    crowd, refused = crowded(size), exhausted()
    print(
        "\n| Threads | Searches a second | Cores of Python | Cores of PostgreSQL | Limit |\n|---:|---:|---:|---:|---|"
    )
    for one in crowd.throughputs:
        print(f"| {one.threads} | {one.searches:.0f} | {one.python:.2f} | {one.postgres:.2f} | {one.limit} |")
    print(f"\nConnections: {crowd.before} before, {crowd.most} at most, {crowd.after} after.")
    print(f"With none free: refused after {refused.seconds:.1f} s of 1.0 s: {refused.message}")
    return crowd.after == crowd.before and crowd.is_whole and not any(one.wrong for one in crowd.throughputs)


def main() -> int:
    """Do what is asked for; fail if something was lost or wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faults", nargs="*", help=f"of {', '.join((*FAULTS, CROWD))}; default: all")
    parser.add_argument("--sample", action="store_true", help="small and quick")
    given = parser.parse_args()
    if unknown := set(given.faults) - {*FAULTS, CROWD}:
        parser.error(f"there is no {', '.join(sorted(unknown))}: there are {', '.join((*FAULTS, CROWD))}")
    logging.disable(
        logging.CRITICAL
    )  # psycopg tells of every connection that is lost; that is what we are here for
    size, is_good, notes = SAMPLE if given.sample else FULL, True, []
    chosen = given.faults or [*FAULTS, CROWD]
    if set(chosen) - {CROWD}:
        print(
            "| Fault | Requests | a second | Errors | Partial | Lost | Wrong | Recovered |\n|---|---:|---:|---|---:|---:|---:|---:|"
        )
    for name in (name for name in chosen if name != CROWD):
        report = FAULTS[name](size)
        print(row(report), flush=True)
        notes += [f"- {report.fault}: {note}" for note in report.notes]
        notes += [f"- {report.fault}: {problem}" for problem in (*report.settled.lost, *report.wrong)]
        is_good &= not (report.settled.lost or report.wrong)
    print("\n".join(["", *notes]))
    if CROWD in chosen:
        is_good &= tell_crowd(size)
    return not is_good


if __name__ == "__main__":
    sys.exit(main())

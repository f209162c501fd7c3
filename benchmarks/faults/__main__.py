"""Cause every fault on real servers under load, and print what the callers saw.

    python -m benchmarks.faults              all faults, about ten minutes
    python -m benchmarks.faults killed cut   some faults
    python -m benchmarks.faults --sample     all faults, small

Errors are counted by class, with the class of their cause. *Lost* counts acknowledged writes that are missing
at the end. *Wrong* counts answers with a text that was never written, answers that lack a note without
reporting it as missing, and differences from a quiet SQLite store with the same documents. Both must be 0.
*Recovered* is the number of seconds from the end of the fault until requests are answered and no more fail.
"""

import argparse
import logging
import sys
from collections.abc import Callable, Mapping

from benchmarks.faults import cells, failover, moving, servers
from benchmarks.faults.load import Report
from benchmarks.faults.servers import FULL, SAMPLE, LoadSize
from benchmarks.faults.threads import exhaust_pool, measure_crowd

FAULTS: Mapping[str, Callable[[LoadSize], Report]] = {
    "killed": servers.kill_server,
    "away": servers.keep_server_away,
    "cut": servers.cut_connections,
    "terminated": servers.terminate_backends,
    "full_disk": servers.fill_disk,
    "full_server": servers.fill_server_disk,
    "hanging": cells.hang_cell,
    "gone": cells.refuse_cell,
    "late": cells.delay_cell,
    "slow": cells.slow_cell,
    "moved": moving.move_collection,
    "mover_killed": moving.kill_mover,
    "cell_failover": failover.fail_over_cell,
    "catalogue_failover": failover.fail_over_catalogue,
}
CROWD = "threads"


def format_row(report: Report) -> str:
    """Format a line of the table."""
    errors = ", ".join(f"{number} {kind}" for kind, number in sorted(report.errors.items())) or "none"
    return (
        f"| {report.fault} | {len(report.requests)} | {report.rate:.0f} | {errors} | {report.partial} | "
        f"{len(report.store_check.lost)} | {len(report.wrong)} | {report.recovered:.1f} |"
    )


def print_crowd(size: LoadSize) -> bool:
    """Print the throughput by number of threads, the connections, and the error if all are in use."""
    crowd, refused = measure_crowd(size), exhaust_pool()
    print(
        "\n| Threads | Searches per second | Cores of Python | Cores of PostgreSQL | Limit |\n|---:|---:|---:|---:|---|"
    )
    for one in crowd.throughputs:
        print(f"| {one.threads} | {one.searches:.0f} | {one.python:.2f} | {one.postgres:.2f} | {one.limit} |")
    print(f"\nConnections: {crowd.before} before, at most {crowd.most}, {crowd.after} after.")
    print(f"All in use: refused after {refused.seconds:.1f} s (limit 1.0 s): {refused.message}")
    return crowd.after == crowd.before and crowd.is_whole and not any(one.wrong for one in crowd.throughputs)


def main() -> int:
    """Run the chosen faults; return 1 if something was lost or wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("faults", nargs="*", help=f"some of {', '.join((*FAULTS, CROWD))}; default: all")
    parser.add_argument("--sample", action="store_true", help="run small and quick versions")
    given = parser.parse_args()
    if unknown := set(given.faults) - {*FAULTS, CROWD}:
        parser.error(f"unknown fault {', '.join(sorted(unknown))}; use some of {', '.join((*FAULTS, CROWD))}")
    logging.disable(logging.CRITICAL)  # psycopg logs every lost connection, and here they are lost on purpose
    size, is_good, notes = SAMPLE if given.sample else FULL, True, []
    chosen = given.faults or [*FAULTS, CROWD]
    if set(chosen) - {CROWD}:
        print(
            "| Fault | Requests | per second | Errors | Partial | Lost | Wrong | Recovered |\n|---|---:|---:|---|---:|---:|---:|---:|"
        )
    for name in (name for name in chosen if name != CROWD):
        report = FAULTS[name](size)
        print(format_row(report), flush=True)
        notes += [f"- {report.fault}: {note}" for note in report.notes]
        notes += [f"- {report.fault}: {problem}" for problem in (*report.store_check.lost, *report.wrong)]
        is_good &= not (report.store_check.lost or report.wrong)
    print("\n".join(["", *notes]))
    if CROWD in chosen:
        is_good &= print_crowd(size)
    return not is_good


if __name__ == "__main__":
    sys.exit(main())

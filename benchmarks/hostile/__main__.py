"""Send hostile requests and files to a real service, and print the processor time of each.

    python -m benchmarks.hostile             all of them, about ten minutes
    python -m benchmarks.hostile PDF MCP     those whose names contain a word

*Idle* is the processor time that the service and its processes used in the second second after the answer, or after
the cancel: it must be nearly nothing, or the work went on.
"""

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.hostile.attacks import ATTACKS, Attack
from benchmarks.hostile.service import Target, open_target

MAX_IDLE_SECONDS = 0.25  # of processor time in a second; an idle service polls its jobs


@dataclass(frozen=True, slots=True)
class Cost:
    """What an attack did: its outcome, its processor time, and that of a second after it."""

    outcome: str
    seconds: float
    idle_seconds: float


def measure(target: Target, attack: Attack) -> Cost:
    """Run an attack and measure its cost."""
    before = target.measure_seconds()
    outcome = attack.run(target)
    after = target.measure_seconds()
    time.sleep(1)
    idle_since = target.measure_seconds()
    time.sleep(1)
    return Cost(outcome, after - before, target.measure_seconds() - idle_since)


def is_held(attack: Attack, cost: Cost) -> bool:
    """Return whether an attack had the expected outcome, cost little, and left the service idle."""
    is_expected = attack.expected in cost.outcome
    return is_expected and cost.seconds <= attack.most_seconds and cost.idle_seconds <= MAX_IDLE_SECONDS


def main(words: list[str]) -> int:
    """Print a row for each attack. Return 1 if one was not held."""
    chosen = [attack for attack in ATTACKS if not words or any(word in attack.name for word in words)]
    held = []
    print("| Attack | Outcome | Processor s | Most | Idle s |\n|---|---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder, open_target(Path(folder)) as target:
        for attack in chosen:
            cost = measure(target, attack)
            held.append(is_held(attack, cost))
            mark = "" if held[-1] else " **not held**"
            numbers = f"{cost.seconds:.1f} | {attack.most_seconds:g} | {cost.idle_seconds:.2f}"
            print(f"| {attack.name} | {cost.outcome[:90]}{mark} | {numbers} |", flush=True)
    print(f"\n{sum(held)} of {len(held)} held")
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

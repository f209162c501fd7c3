"""Hostile requests and files against a real service: each costs little, and leaves the service idle."""

from collections.abc import Iterator

import pytest
from benchmarks.hostile.__main__ import MAX_IDLE_SECONDS, measure
from benchmarks.hostile.attacks import ATTACKS, Attack
from benchmarks.hostile.service import Target, open_target

SAMPLE = [pytest.param(attack, id=attack.name) for attack in ATTACKS[::8]]
OTHERS = [
    pytest.param(attack, id=attack.name, marks=pytest.mark.full) for number, attack in enumerate(ATTACKS) if number % 8
]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with open_target(tmp_path_factory.mktemp("hostile")) as opened:
        yield opened


def test_table_has_forty_attacks() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS) >= 40


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("attack", [*SAMPLE, *OTHERS])
def test_attack_costs_little_and_leaves_the_service_idle(target: Target, attack: Attack) -> None:
    cost = measure(target, attack)
    assert attack.expected in cost.outcome
    assert cost.seconds <= attack.most_seconds
    assert cost.idle_seconds <= MAX_IDLE_SECONDS

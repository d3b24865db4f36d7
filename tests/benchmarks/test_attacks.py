"""The benchmark of attacks: its topologies are good, and everybody in it has a part."""

from pathlib import Path

import pytest

from benchmarks.attacks.__main__ import PORTS, Turn, is_short, line, prepare
from benchmarks.attacks.attackers import ATTACKERS
from benchmarks.attacks.kinds import ATTACKS, Attack
from benchmarks.attacks.pairs import PAIRS
from tests.topologies.support import errors


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("attacks")
    prepare(made)
    return made


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_the_topology_is_what_check_accepts(attack: Attack, folder: Path) -> None:
    ports = {name: 5000 + number for number, name in enumerate(PORTS)}
    assert errors(attack.topology.format(folder=folder, **ports)) == []


def test_each_attack_has_an_attacker_and_a_pair() -> None:
    assert {attack.name for attack in ATTACKS} == set(ATTACKERS)
    assert {attack.pair for attack in ATTACKS} <= {*PAIRS, "tmq"}


def test_a_pair_may_wait_longer_where_the_gateway_has_no_time_left() -> None:
    quiet, full, idle = Turn(1, 2, 3, 0.1, 0), Turn(9, 30, 40, 0.9, 0.1), Turn(9, 30, 40, 0.2, 0.1)
    assert [is_short(one) for one in (quiet, full, idle)] == [False, False, True]
    assert "short" in line(ATTACKS[0], [(quiet, idle)] * 3)
    assert "15.0" in line(ATTACKS[0], [(quiet, idle)] * 3)

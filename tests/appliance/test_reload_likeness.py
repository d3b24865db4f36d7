"""After a reload a gateway is as one that was started with the new file, whichever setting has changed."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from appliance.alarms.keeping import MemoryKeeper
from appliance.compose import Appliance
from appliance.parts.side import medium_plan
from bus.errors import BusError
from bus.schema import Record, settings_of
from tests.appliance.likeness import likeness
from tests.appliance.plants import PLANTS, WITH_PROCESSES, Site, furnish
from tests.appliance.variants import Place, accepted, places, records, variants
from tests.helpers.seeds import SEED
from topologies.resolved.resolve import resolve
from topologies.wiring.segments import Wiring

DRAWN = [name for name in PLANTS if name not in WITH_PROCESSES]  # test_tap.py has recorders
WITHOUT = {"TmqProtocol"}
"""Records with no setting that matters."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return furnish(tmp_path_factory.mktemp("plants"))


@contextmanager
def opened(wiring: Wiring) -> Iterator[Appliance]:
    appliance = Appliance(resolve(wiring, "gw"), keeper=MemoryKeeper())
    try:
        appliance.open(asyncio.get_running_loop())
        yield appliance
    finally:
        appliance.close()


def differing(one: dict[str, str], other: dict[str, str]) -> list[str]:
    paths = dict.fromkeys([*one, *other])
    return [f"{path}: {one.get(path)}, started anew {other.get(path)}" for path in paths
            if one.get(path) != other.get(path)]  # fmt: skip


def of_reload(old: Wiring, new: Wiring) -> list[str]:
    """Return how a gateway that was reloaded differs from one that was started; nothing of it is refused."""
    with opened(old) as appliance:
        before = likeness(appliance)
        following = appliance.prepare(resolve(new, "gw"))
        assert differing(before, likeness(appliance)) == [], "what is only prepared changes nothing"
        appliance.change(following)
        found = likeness(appliance)
    with opened(new) as appliance:
        return differing(found, likeness(appliance))


def draw(site: Site, seed: int) -> dict[str, list[Place]]:
    """Return the settings of all plants by the plants' names, each at one of those that have it."""
    chance, found = random.Random(seed), defaultdict[tuple[type[Record], str], list[tuple[str, Place]]](list)
    for name in DRAWN:
        for place in places(site.plant(name)):
            if place.path != ("name",):  # which needs a restart
                found[place.record, place.key].append((name, place))
    drawn: dict[str, list[Place]] = {name: [] for name in DRAWN}
    for at in found.values():
        name, place = chance.choice(at)
        drawn[name].append(place)
    return drawn


@pytest.fixture(scope="module")
def drawn(site: Site) -> dict[str, list[Place]]:
    print(f"the same settings again: FUZZ_SEED={SEED}")
    return draw(site, SEED)


async def check(site: Site, name: str, place: Place) -> None:
    """Go to another value of a setting, and back."""
    document = site.plant(name)
    variant = next(variants(site, document, place), None)
    if variant is None:
        return  # there is none beside the others
    old = accepted(document)
    try:
        found = [*of_reload(old, variant.wiring), *of_reload(variant.wiring, old)]
    except BusError:
        return  # a start refuses it, too
    assert found == [], f"{name}: {variant.words}"
    await asyncio.sleep(0)


async def test_some_settings(site: Site, drawn: dict[str, list[Place]]) -> None:
    chance = random.Random(SEED)
    names = chance.sample([name for name in DRAWN if drawn[name]], 12)
    for name in names:
        for place in chance.sample(drawn[name], min(2, len(drawn[name]))):
            await check(site, name, place)


def test_a_plan_has_each_setting_of_its_medium(site: Site) -> None:
    """One stood behind another of the same name: a reload gave a CAN side no other node id."""
    plans = 0
    for name in DRAWN:
        for bridge in resolve(accepted(site.plant(name)), "gw").bridges.values():
            for side in bridge.sides:
                if side.medium is not None:
                    plan, plans = medium_plan(side.medium, side.policy, lambda now_s: True), plans + 1
                    own = settings_of(side.medium.medium)
                    assert own == {key: plan.settings[key] for key in own}
    assert plans > len(DRAWN) // 2


@pytest.mark.parametrize("name", DRAWN)
async def test_every_setting(site: Site, drawn: dict[str, list[Place]], name: str) -> None:
    for place in drawn[name]:
        await check(site, name, place)


def test_every_record_is_in_a_plant(site: Site) -> None:
    found = {place.record for name in PLANTS for place in places(site.plant(name))}
    assert {one.__name__ for one in records() - found} == WITHOUT

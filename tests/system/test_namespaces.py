"""Multicast between hosts: two network namespaces with two cables between them."""

import subprocess
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.bridges.support import FRAME, MESSAGE, SIZES, frame
from tests.helpers.peers import until
from tests.system.namespaces import Member, Network, member, network, why_not

WHY_NOT = why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

SITE, LINK_LOCAL, V4 = "ff15::91:7", "ff02::91:7", "239.255.91.7"
every_family = pytest.mark.parametrize("group", [V4, SITE, LINK_LOCAL])
both_families = pytest.mark.parametrize("group", [V4, SITE])


@pytest.fixture(scope="module")
def net() -> Iterator[Network]:
    """A network for tests that leave it unchanged."""
    with network() as made:
        yield made


@pytest.fixture
def worn(net: Network) -> Iterator[Network]:
    """The same network; its cables are made again after the test."""
    yield net
    for cable in net.CABLES:
        net.unplug(cable)
        net.plug(cable)


async def members(
    stack: AsyncExitStack, net: Network, group: str, *places: str, **options: Any
) -> list[Member]:
    """Run a member at each place, `host/interface`; yield when all are up."""
    made = []
    for place in places:
        host, _, interface = place.partition("/")
        made.append(await stack.enter_async_context(member(net, host, group, interface, **options)))
    for one in made:
        await one.up()
    return made


@every_family
async def test_across_two_hosts_both_ways(net: Network, group: str) -> None:
    messages = [frame(size) for size in SIZES] + [MESSAGE, FRAME, FRAME, frame(3072), frame(3072)]
    async with AsyncExitStack() as stack:
        a, b = await members(stack, net, group, "a/plant", "b/plant")
        a.say(*messages)
        await until(lambda: len(b.heard) == len(messages))
        b.say(*messages)
        await until(lambda: len(a.heard) == len(messages))
        assert a.heard == b.heard == messages
        assert (await a.count())["balance"] == 0


@every_family
async def test_the_right_interface_and_no_other(net: Network, group: str) -> None:
    """Host b is a member on both its interfaces, so both receive the group."""
    async with AsyncExitStack() as stack:
        places = ("a/plant", "a/office", "b/plant", "b/office")
        a_plant, a_office, b_plant, b_office = await members(stack, net, group, *places)
        a_plant.say(frame(20))
        await until(lambda: b_plant.heard == [frame(20)])
        a_office.say(frame(24))
        await until(lambda: b_office.heard == [frame(24)])
        a_plant.say(frame(28))
        await until(lambda: len(b_plant.heard) == 2)
        assert b_plant.heard == [frame(20), frame(28)]
        assert b_office.heard == [frame(24)]
        assert a_plant.heard == a_office.heard == []


async def test_by_address(net: Network) -> None:
    async with AsyncExitStack() as stack:
        a, b = await members(stack, net, V4, "a/10.91.1.1", "b/office")
        a.say(FRAME)
        await until(lambda: b.heard == [FRAME])
        assert (await a.count())["sent"] == 1


async def test_an_ipv6_interface_by_address(net: Network) -> None:
    async with AsyncExitStack() as stack:
        a, b = await members(stack, net, SITE, "a/fd91:1::1", "b/office")
        a.say(FRAME)
        await until(lambda: b.heard == [FRAME])


@both_families
async def test_members_of_one_host_hear_each_other_unless_loopback_is_off(net: Network, group: str) -> None:
    async with AsyncExitStack() as stack:
        neighbour, far = await members(stack, net, group, "a/plant", "b/plant")
        silent = await stack.enter_async_context(member(net, "a", group, "plant", loopback=False))
        await silent.up()
        silent.say(FRAME)
        await until(lambda: far.heard == [FRAME])
        far.say(MESSAGE)
        await until(lambda: bool(neighbour.heard) and bool(silent.heard))
        neighbour.say(frame(99))
        await until(lambda: len(silent.heard) == 2 and len(far.heard) == 2)
        assert neighbour.heard == [MESSAGE]
        assert silent.heard == [MESSAGE, frame(99)]
        assert (await silent.count())["rejected"] == {}


@both_families
async def test_an_interface_taken_down_and_brought_back(worn: Network, group: str) -> None:
    async with AsyncExitStack() as stack:
        a, b = await members(stack, worn, group, "a/plant", "b/plant")
        worn.link("a", "plant", "down")
        await a.waiting("plant is down")
        await b.waiting("plant has no carrier")
        worn.link("a", "plant", "up")
        worn.address("a", "plant")  # an interface loses its IPv6 addresses when it goes down
        await a.up()
        await b.up()
        a.say(FRAME)
        await until(lambda: b.heard == [FRAME])
        b.say(MESSAGE)
        await until(lambda: a.heard == [MESSAGE])


@both_families
async def test_an_interface_removed_and_made_again(worn: Network, group: str) -> None:
    async with AsyncExitStack() as stack:
        a, b = await members(stack, worn, group, "a/plant", "b/plant")
        worn.unplug("plant")
        await a.waiting("no interface plant")
        await b.waiting("no interface plant")
        worn.plug("plant")
        await a.up()
        await b.up()
        a.say(FRAME)
        await until(lambda: b.heard == [FRAME])


@both_families
async def test_an_address_that_is_taken_away(worn: Network, group: str) -> None:
    async with AsyncExitStack() as stack:
        a, b = await members(stack, worn, group, "a/office", "b/office")
        if group == SITE:
            worn.link("a", "office", "addrgenmode", "none")
            worn.run("a", "ip", "-6", "addr", "flush", "dev", "office", "scope", "link")
        worn.address("a", "office", "del")
        await a.waiting("address that is ready")
        worn.address("a", "office")
        await a.up()
        a.say(FRAME)
        await until(lambda: b.heard == [FRAME])


async def test_no_datagram_is_larger_than_the_interface_takes(worn: Network) -> None:
    async with AsyncExitStack() as stack:
        for host in "ab":
            worn.link(host, "plant", "mtu", "600")
        a, b = await members(stack, worn, V4, "a/plant", "b/plant")
        a.say(frame(1000))
        await until(lambda: b.heard == [frame(1000)])
        assert (await a.count())["sent_bytes"] == 1000 + 2 * 18
        for host in "ab":
            worn.link(host, "plant", "mtu", "300")
        before, after = 0, 1
        while after - before != 1000 + 4 * 18:  # the notification of it arrives by another way
            before = (await a.count())["sent_bytes"]
            a.say(frame(1000))
            after = (await a.count())["sent_bytes"]
        await until(lambda: len(b.heard) == a.stats["sent"])


def throttle(net: Network, rate: str) -> None:
    """Limit the interface `plant` of host a to `rate`, with a queue of 6 KB."""
    limits = ("tbf", "rate", rate, "burst", "3000", "limit", "6000")
    try:
        net.run("a", "tc", "qdisc", "replace", "dev", "plant", "root", *limits)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"this kernel has no token bucket: {error.stderr!r}")


@both_families
async def test_a_slow_interface_loses_nothing_and_doubles_nothing(worn: Network, group: str) -> None:
    """The queue overflows (ENOBUFS), which Linux reports only to those who ask. This host has already heard
    the datagram, so it must not hear the retransmission.
    """
    throttle(worn, "16mbit")
    messages = [frame(1000, seed) for seed in range(300)]
    async with AsyncExitStack() as stack:
        a, neighbour, b = await members(stack, worn, group, "a/plant", "a/plant", "b/plant")
        a.say(*messages)
        a.say(*messages)
        await until(lambda: len(b.heard) == len(neighbour.heard) == 600)
        assert b.heard == neighbour.heard == messages * 2
        counted = await a.count()
        assert (counted["sent"], counted["dropped"], counted["balance"]) == (600, {}, 0)


async def test_a_clogged_interface_drops_by_count(worn: Network) -> None:
    throttle(worn, "8mbit")
    async with AsyncExitStack() as stack:
        a, b = await members(stack, worn, V4, "a/plant", "b/plant", queue_bytes=16384)
        a.say(*[frame(1000, seed) for seed in range(300)])
        counted = await a.count()
        assert counted["dropped"]["queue full"] > 200
        assert counted["balance"] == 0
        while (await a.count())["queued"]:
            pass
        assert a.stats["sent"] + a.stats["dropped"]["queue full"] == 300
        await until(lambda: len(b.heard) == a.stats["sent"])

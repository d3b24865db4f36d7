"""Whoever joins a multicast group hears no other group of its port: every listener of a group."""

import asyncio
import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

pytest.importorskip("can")

from bridges.media.can.group import GroupBus
from bus.hub import Hub
from bus.machine.groups import trouble
from devices.dbp import ports
from devices.dbp.beacon.finding import Listener
from tests.bridges.support import frame, recorder, say
from tests.helpers.links import can_link, multicast_link
from tests.helpers.peers import until
from tests.helpers.ports import free_port

OPTIONS = {socket.AF_INET: (socket.IPPROTO_IP, 49), socket.AF_INET6: (socket.IPPROTO_IPV6, 29)}


@contextmanager
def can_bus(port: int, channel: str) -> Iterator[None]:
    with linked(can_link("udp_multicast", channel, 5, fd=True, options={"port": port, "hop_limit": 0})):
        yield


@contextmanager
def linked(link: object) -> Iterator[None]:
    link.open(Hub(), asyncio.get_running_loop())  # type: ignore[attr-defined]
    yield
    link.close()  # type: ignore[attr-defined]


@contextmanager
def beacons(port: int) -> Iterator[None]:
    listener = Listener(lambda _: None)
    listener.open(asyncio.get_running_loop())
    yield
    listener.close()


LISTENERS: dict[str, Callable[[int], object]] = {
    "can": lambda port: can_bus(port, "239.74.163.91"),
    "can over IPv6": lambda port: can_bus(port, "ff15:7079:7468:6f6e:6465:6d6f:6d63:6173"),
    "multicast": lambda port: linked(multicast_link("239.255.91.7", port, "lo", hops=0)),
    "beacons": beacons,
}


@contextmanager
def looked_at(file: int) -> Iterator[socket.socket | None]:
    """Yield a descriptor as a socket, None if it is none. The descriptor stays open."""
    if not stat.S_ISSOCK(os.fstat(file).st_mode):
        yield None
        return
    with socket.socket(fileno=os.dup(file)) as sock:
        yield sock


def joined(port: int) -> list[int]:
    """Return, for each socket of this process that is bound to a port, whether it hears all groups of it."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError), looked_at(int(name)) as sock:
            if sock is None:
                continue
            if sock.type == socket.SOCK_DGRAM and sock.family in OPTIONS and sock.getsockname()[1] == port:
                found.append(sock.getsockopt(*OPTIONS[sock.family]))
    return found


@pytest.mark.parametrize("name", LISTENERS)
async def test_it_hears_its_own_group_only(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setattr(ports, "BEACON", port, raising=False)
    with LISTENERS[name](port):  # type: ignore[attr-defined]
        await until(lambda: joined(port), what="a socket at the port")
        await until(lambda: not any(joined(port)), 3.0, "a socket that hears its own group only")


async def test_two_can_buses_of_one_port_are_two() -> None:
    port, loop = free_port(), asyncio.get_running_loop()
    settings = {"fd": True, "options": {"port": port, "hop_limit": 0}}
    hubs = [Hub(), Hub(), Hub()]
    links = [
        can_link("udp_multicast", f"239.74.163.{group}", node, **settings)
        for node, group in enumerate((91, 91, 92), 1)
    ]
    heard = [recorder(hub) for hub in hubs]
    for link, hub in zip(links, hubs, strict=True):
        link.open(hub, loop)
    await until(lambda: all(link.state == "up" for link in links))
    say(hubs[0], None, frame(8))
    await until(lambda: heard[1].messages)
    say(hubs[1], None, frame(9))
    await until(lambda: heard[0].messages)
    assert heard[2].messages == []
    for link in links:
        link.close()


@pytest.mark.parametrize("group", ["10.0.0.1", "239.1.2", "group", "::1"])
def test_a_look_tells_what_is_no_group(group: str) -> None:
    assert trouble(group).startswith(f"{group} is no multicast group")


def test_a_can_bus_is_joined_on_the_interface_of_its_zone() -> None:
    """It spoke there, and heard where the machine's route leads."""
    group, address = "ff15::7a3", socket.inet_pton(socket.AF_INET6, "ff15::7a3").hex()
    with closing(GroupBus(f"{group}%lo", free_port()).socket):
        lines = [line.split() for line in Path("/proc/net/igmp6").read_text().splitlines()]
        assert [name for _, name, found, *_ in lines if found == address] == ["lo"]
    assert trouble(f"{group}%lo") == ""
    with pytest.raises(OSError, match="no interface with this name"):
        GroupBus(f"{group}%nowhere0")
    assert trouble(f"{group}%nowhere0") == "no interface with this name"

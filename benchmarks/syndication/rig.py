"""The measurements of the syndication broker: each on fresh processes, with clients in C where it matters."""

import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from random import Random
from typing import Any, Final

import msgpack

from benchmarks.processes import memory_mib
from benchmarks.run import generate
from benchmarks.systems import SYSTEMS, BenchError, Running, System, build, raise_file_limit, started

WARMUP_S: Final = 0.5
PATIENCE_S: Final = 120.0
SUBSCRIBERS: Final = 10
RATE: Final = 10_000
PACED, SINGLE, BATCHED = str(RATE), "single", "batched"
CHANGES: Final = 5000  # a second
QUERIES: Final = (10, 100, 1000, 10_000)
PEERS: Final = 4096
ROOMS: Final = 64
SPARE_FILES: Final = 200
MESSAGE_BYTES: Final = 49  # of the publications in `everything`
_CYCLE: Final = 4096
_ID: Final = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
_HERE: Final = [sys.executable, "-m"]

OURS: Final = System(
    "ours",
    "buscoupler syndicate",
    "",
    lambda port: [*_HERE, "buscoupler", "syndicate", f"tcp://127.0.0.1:{port}"],
    lambda: "",
)
FIRST: Final = ("chrt", "--fifo", "10")  # before a command: it runs before all ordinary processes
OURS_FIRST: Final = OURS._replace(
    name="first",
    label="buscoupler syndicate, before others",
    command=lambda port: [*FIRST, *OURS.command(port)],
    missing=lambda: "" if _may_be_first() else "this user may not set real-time priority",
)
PLAIN: Final = OURS._replace(
    name="plain",
    label="asyncio and msgpack, no queries",
    command=lambda port: [*_HERE, "benchmarks.syndication.brokers", "plain", str(port)],
)
WIDE: Final = OURS._replace(
    name="wide",
    label="ours, with room for more",
    command=lambda port: [*_HERE, "benchmarks.syndication.brokers", "wide", str(port)],
)
BUS: Final = SYSTEMS[0]._replace(name="bus", label="buscoupler device, a bus")
pack = msgpack.packb


def _may_be_first() -> bool:
    try:
        return not subprocess.run([*FIRST, "true"], capture_output=True, check=False).returncode
    except OSError:
        return False


def load(*arguments: object, before: Sequence[str] = ()) -> dict[str, float]:
    """Run syndication/load.c, which describes its arguments. Raises `BenchError` if it fails."""
    command = [*before, str(build("syndication/load")), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    if done.returncode:
        raise BenchError(done.stderr.strip() or f"the load ended with {done.returncode}")
    values: dict[str, float] = json.loads(done.stdout)
    return values


def evaluation(system: System, seconds: float, haste: float) -> dict[str, float]:
    """Return the latencies of the load that the original's authors published. Load and broker run alike."""
    with started(system) as broker:
        before = FIRST if system is OURS_FIRST else ()
        return load("evaluation", broker.port, seconds, haste, broker.pid, before=before)


def fanout(system: System, writes: str, seconds: float) -> dict[str, float]:
    """Return the figures of one producer with ten subscribers to all of its publications."""
    with started(system) as broker:
        if system is BUS:
            what = (MESSAGE_BYTES, SUBSCRIBERS, 0, writes, WARMUP_S, seconds)
            return generate("throughput", broker.port, system.protocol, *what, broker.pid)
        return _streamed(broker, everything(), writes, seconds)


def everything() -> list[Any]:
    """Return queries, and publications without metadata that match all of them."""
    publications = [[_ID, {}, number / 2] for number in range(_CYCLE)]
    return ["Room = '410'"] * SUBSCRIBERS + [[_ID, {"Room": "410"}, 0.0], *publications]


def changes() -> list[Any]:
    """Return ten different queries, and publications that enter the sets of all and leave them again."""
    queries = [f"Room = 'a' and Type != '{number}'" for number in range(SUBSCRIBERS)]
    publications = [[_ID, {"Room": room}, 0.5] for room in "ba" * (_CYCLE // 2)]
    return [*queries, [_ID, {"Room": "a"}, 0.0], *publications]


def _streamed(broker: Running, messages: Iterable[Any], writes: str, seconds: float) -> dict[str, float]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"".join(map(pack, messages)))
        file.flush()
        return load("fanout", broker.port, file.name, SUBSCRIBERS, writes, WARMUP_S, seconds, broker.pid)


def changes_us(rounds: int, seconds: float) -> Iterator[dict[int, float]]:
    """Yield a broker's time for a change of metadata, by the number of queries; ten of them name the key.

    There is a broker for each number. They take turns in each round, so that what else the machine does
    affects all alike.
    """
    with ExitStack() as stack:
        raise_file_limit(sum(QUERIES) + SPARE_FILES)
        brokers = {queries: stack.enter_context(started(WIDE)) for queries in QUERIES}
        for queries, broker in brokers.items():
            _subscribe(stack, broker, [f"Key{number} = 'x'" for number in range(queries - SUBSCRIBERS)])
        for _ in range(rounds):
            runs = {n: _streamed(b, changes(), str(CHANGES), seconds) for n, b in brokers.items()}
            yield {queries: run["cpu_us_sent"] for queries, run in runs.items()}


def _subscribe(stack: ExitStack, broker: Running, queries: Sequence[str]) -> None:
    """Subscribe a client to each query. They are all there when this returns."""
    for client in [_said(stack, broker, query) for query in queries]:
        _wait(client, 0)


def _said(stack: ExitStack, broker: Running, message: Any) -> socket.socket:
    client = stack.enter_context(socket.create_connection(("127.0.0.1", broker.port), PATIENCE_S))
    client.sendall(pack(message))
    return client


def memory() -> dict[str, float]:
    """Return the growth of the broker by 4096 producers, and then by 4096 subscribers, in MiB."""
    chance = Random(262)
    with ExitStack() as stack:
        raise_file_limit(2 * PEERS + SPARE_FILES)
        broker = stack.enter_context(started(WIDE))
        witness = _said(stack, broker, "has Building")
        _wait(witness, 0)  # the tables of the grammar are made
        sizes = [memory_mib(broker.pid)]
        for number in range(PEERS):
            _said(stack, broker, [f"{number:08x}{_ID[8:]}", _metadata(chance), 0.5])
        _wait(witness, PEERS)
        sizes.append(memory_mib(broker.pid))
        _subscribe(stack, broker, [_query(chance) for _ in range(PEERS)])
        sizes.append(memory_mib(broker.pid))
        return {"producers_mib": sizes[1] - sizes[0], "queries_mib": sizes[2] - sizes[1], "all_mib": sizes[2]}


def _wait(subscriber: socket.socket, publications: int) -> None:
    """Read until the first difference and so many publications have come."""
    unpacker, left = msgpack.Unpacker(), publications
    while True:
        unpacker.feed(data := subscriber.recv(1 << 20))
        found = [isinstance(message, list) for message in unpacker]
        left -= sum(found)
        if not data:
            raise BenchError("the broker closed a subscriber")
        if left <= 0 and (found or publications):
            return


def _metadata(chance: Random) -> dict[str, str]:
    """Return metadata of eight keys, as in the original's load generator."""
    keys = {f"key{number}": str(chance.random()) for number in range(5)}
    return {"Building": "Soda", "Room": str(chance.randrange(ROOMS)), "Type": "Counter", **keys}


def _query(chance: Random) -> str:
    other = "".join(chance.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=20))
    return f"Room = '{chance.randrange(ROOMS)}' and Type != '{other}'"

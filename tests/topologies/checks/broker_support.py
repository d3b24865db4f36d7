"""Topologies with two brokers, for tests of the sides that dial them."""

from tests.topologies.support import PAIR

BROKERS = "brokers: {main: {on: a, listen: 'tcp://*:9942'}, spare: {on: b, listen: 'tcp://*:9943'}}\n"
BUSES = """\
buses:
  p: {on: a, listen: {url: "tcp://0.0.0.0:5", trunk: true}}
  q: {on: b, dial: {url: "tcp://10.0.0.1:5", trunk: true}}
"""


def text(*bridges: str, brokers: str = BROKERS, head: str = PAIR) -> str:
    """Return a topology with these bridges, which have the names x, y, ..."""
    lines = [f"  {name}: {{{words}}}\n" for name, words in zip("xyz", bridges, strict=False)]
    return head + brokers + BUSES + "bridges:\n" + "".join(lines)


def one(tmq: str, more: str = "", on: str = "a") -> str:
    """Return a topology of one bridge with a TMQ side; it is on line 8."""
    return text(f"on: {on}, join: [{{tmq: {tmq}{more}}}, uart: /dev/x]")

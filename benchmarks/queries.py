"""A measurement of the query language: parsing a query, and matching it against the metadata of producers.

    python -m benchmarks.queries

It prints a table: for each query the processor's time for a parse, and for a match, over the metadata of 360
producers. The first three queries have the form of those in the original's clients and benchmarks. The last
two have the most conditions, and the most costly pattern, that a query may have.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final

from benchmarks.command import Command, run_as_command
from devices.syndication.query import Value, parse

PRODUCERS: Final = [
    {
        "Room": str(number % 40),
        "Type": ("Temperature Sensor", "Camera", "Thermostat")[number % 3],
        "Metadata/Location/Building": ("Soda Hall", "Cory Hall")[number % 2],
        "Tags": ["zone", f"floor-{number % 7}", "sensor"],
        "Floor": number % 7,
        **{f"Property{n}": f"value {n}" for n in range(5)},
    }
    for number in range(360)
]
QUERIES: Final = {
    "one comparison": "Room = '17'",
    "two comparisons": "Room = '17' and Type = 'Temperature Sensor'",
    "five rooms and not a type": " or ".join(f"Room = '{n}'" for n in range(5)) + " and Type != 'xyz'",
    "a number": "Floor = 4",
    "a key": "has Thermostat",
    "a list": '["floor-3", "floor-5"] in Tags',
    "a pattern": "Metadata/Location/Building like '^Soda'",
    "mixed": "has Tags and (Floor = 1 or not Room = '3') and Type like 'S.nsor' and ['zone'] in Tags",
    "128 conditions": " and ".join(f"Room != 'room {n}'" for n in range(128)),
    "a costly pattern": "Letters like '(a?){84}a{84}$'",
}
LETTERS: Final = [{"Letters": "a" * 64}]


def seconds_each(do: Callable[[], object], seconds: float) -> float:
    """Return the processor's time for a call: the best of ten runs that together take about `seconds`."""
    do()
    calls = max(1, round(seconds / 10 / _run(do, 1)))
    return min(_run(do, calls) for _ in range(10))


def _run(do: Callable[[], object], calls: int) -> float:
    start = time.process_time_ns()
    for _ in range(calls):
        do()
    return (time.process_time_ns() - start) / 1e9 / calls


def matching(text: str, producers: Sequence[dict[str, Value]], seconds: float) -> float:
    """Return the time of one match."""
    matches = parse(text).matches
    return seconds_each(lambda: [matches(metadata) for metadata in producers], seconds) / len(producers)


def row(name: str, text: str, seconds: float) -> str:
    """Return a row of the table."""
    producers = LETTERS if "Letters" in text else PRODUCERS
    parsing = seconds_each(lambda: parse(text), seconds)
    match = matching(text, producers, seconds)  # type: ignore[arg-type]
    return f"| {name} | {len(text)} | {parsing * 1e6:,.0f} | {match * 1e6:,.2f} | {1 / match:,.0f} |"


def main() -> None:
    """Print the table."""
    options = Command("benchmarks.queries", __doc__)
    options.add_seconds(1.0)
    seconds = options.parse_args().seconds
    print("| query | characters | us a parse | us a match | matches a second |\n|---|---|---|---|---|")
    for name, text in QUERIES.items():
        print(row(name, text, seconds), flush=True)


if __name__ == "__main__":
    run_as_command(main)

"""`python -m benchmarks.scale`: a fleet on paper: bytes, files, shuffles and processor time of each job.

The coefficients were measured on one machine (docs/performance.md); what follows from them is
arithmetic, and nobody has run such a fleet.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from benchmarks.command import Command, run_as_command

DAY_S: Final = 86_400
YEAR_DAYS: Final = 365

ROWS_A_FRAME: Final = 8  # it crosses 4 gateways, each with a row as it comes and one as it goes
BYTES_A_ROW: Final = 9  # 995,801 planted rows are 8.5 MB, small payloads
BYTES_A_ROW_MOST: Final = 16  # with JSON of 50 bytes
FILES_A_DAY: Final = 1_440  # of a gateway: one a minute
FILE_BYTES: Final = 128 << 20  # compacted
SUM_BYTES: Final = 48  # one frame's sums in a shuffle, of up to 31 segments; 8 more for each 31 others
SEGMENTS_A_WORD: Final = 31
INVENTORY_ROWS: Final = 8  # of a gateway, that come to the driver
CORE_US_A_ROW: Final = {"audit": 2.5, "rates": 0.92}
"""On two cores: the command's seconds at 20 M rows less those at 1 M (35.6 - 11.6, 15.5 - 6.8), by 19 M."""


class Fleet(NamedTuple):
    """Gateways in plants of equal size, with so many segments each; a frame stays in its plant."""

    gateways: int
    plants: int
    segments_a_gateway: int
    frames_a_s: int

    @property
    def rows_a_day(self) -> int:
        return self.frames_a_s * ROWS_A_FRAME * DAY_S

    def sum_bytes(self, plants: int) -> int:
        """Return the bytes of one frame's sums if the audit takes a share of the fleet at a time."""
        segments = self.gateways * self.segments_a_gateway // plants
        return SUM_BYTES + 8 * (-(-segments // SEGMENTS_A_WORD) - 1)

    def shuffle_bytes(self, plants: int) -> int:
        """Return what the audit of a day shuffles: a partial sum for each frame and gateway it passed."""
        return self.rows_a_day // 2 * self.sum_bytes(plants)


def lines(fleet: Fleet) -> Iterator[str]:
    """Yield the table as lines of Markdown."""
    yield "| | a gateway | the fleet |"
    yield "|---|---:|---:|"
    for row in (*stored(fleet), *audited(fleet), *worked(fleet)):
        yield f"| {' | '.join(row)} |"


def stored(fleet: Fleet) -> Iterator[tuple[str, str, str]]:
    """Yield what is stored, in a day and in a year."""
    rows, gateways = fleet.rows_a_day, fleet.gateways
    files = -(-rows * BYTES_A_ROW // gateways // FILE_BYTES)
    yield "rows a day", f"{rows / gateways / 1e6:,.0f} M", f"{rows / 1e9:,.0f} G"
    for name, days, unit in (
        ("day", 1, (1e9, "GB", 1e12, "TB")),
        ("year", YEAR_DAYS, (1e9, "GB", 1e15, "PB")),
    ):
        low, high = rows * BYTES_A_ROW * days, rows * BYTES_A_ROW_MOST * days
        small, of_one, large, of_all = unit
        one = f"{low / gateways / small:,.1f} to {high / gateways / small:,.1f} {of_one}"
        yield f"Parquet a {name}", one, f"{low / large:,.1f} to {high / large:,.1f} {of_all}"
    yield "files a day, as written", f"{FILES_A_DAY:,}", f"{FILES_A_DAY * gateways / 1e6:.1f} M"
    yield "files a day, compacted", f"{files}", f"{files * gateways:,}"
    yield "files a year, compacted", f"{files * YEAR_DAYS:,}", f"{files * gateways * YEAR_DAYS / 1e6:.1f} M"
    yield "directories a year", f"{YEAR_DAYS}", f"{YEAR_DAYS * gateways / 1e6:.2f} M"


def audited(fleet: Fleet) -> Iterator[tuple[str, str, str]]:
    """Yield what an audit of a day moves: plant by plant, and of the whole fleet at once."""
    yield "inventory rows at the driver", f"{INVENTORY_ROWS}", f"{INVENTORY_ROWS * fleet.gateways:,}"
    for name, plants in (("plant by plant", fleet.plants), ("at once", 1)):
        yield f"one frame's sums, {name}", "", f"{fleet.sum_bytes(plants):,} bytes"
        yield f"shuffle of a day's audit, {name}", "", f"{fleet.shuffle_bytes(plants) / 1e12:,.1f} TB"


def worked(fleet: Fleet) -> Iterator[tuple[str, str, str]]:
    """Yield the processor time of jobs."""
    for job, core_us in CORE_US_A_ROW.items():
        core_s = fleet.rows_a_day * core_us / 1e6
        cores = f"{core_s / 3600:,.0f} core hours ({core_s / DAY_S:,.1f} cores all day)"
        yield f"{job} of a day", f"{core_s / fleet.gateways:,.0f} core seconds", cores


def main() -> None:
    parser = Command("benchmarks.scale", __doc__)
    parser.add_argument("--gateways", type=int, default=10_000)
    parser.add_argument("--plants", type=int, default=1_000)
    parser.add_argument("--segments", type=int, default=3, help="of a gateway (3)")
    parser.add_argument("--frames", type=int, default=1_000_000, help="a second, of the fleet (1000000)")
    given = parser.parse_args()
    print(*lines(Fleet(given.gateways, given.plants, given.segments, given.frames)), sep="\n")


if __name__ == "__main__":
    run_as_command(main)

"""The media's figures: every line can be measured, every format is exact, the page marks missed targets."""

import pytest

from benchmarks.formats import FORMATS, Cost, frame_of
from benchmarks.lines import Carried, Sent, can_limit, saturate, uart_limit
from benchmarks.media import middle, page
from bridges.simulate import CanWire, SerialLine, run


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_has_something_to_time(name: str) -> None:
    encode, decode = FORMATS[name]([frame_of(size) for size in (20, 200, 2048)])
    assert encode()
    decode()


def test_a_line_is_kept_full() -> None:
    async def serial() -> tuple[float, float]:
        line = SerialLine(115_200)
        return await saturate(line.link("a"), line.link("b"), 64, 1.0)

    assert run(serial())[0] / uart_limit(64, 115_200) == pytest.approx(1, abs=0.02)
    wire = CanWire(125_000)

    async def can() -> tuple[float, float]:
        return await saturate(wire.link(1), wire.link(2), 64, 1.0)

    assert run(can())[0] / can_limit(wire, 64, False) == pytest.approx(1, abs=0.03)


def test_the_page_says_what_was_missed() -> None:
    runs = [Carried("UART", 64, 1000, carried, 10) for carried in (0.9, 0.98, 0.999)]
    text = page(
        [middle(runs), runs[2]], [Sent(64, 2e6, 2e5, 0.5, 5)], [Cost("CAN", 20, 1, 2), Cost("CAN", 200, 3, 4)]
    )
    assert "| UART | 64 B | 1,000 | 98.0% | 10 | 1% | MISSED |" in text
    assert "| 99.9% | 10 | 1% | reached |" in text
    assert "| 64 B | 0.50 | 5.00 | 10.0 |" in text
    assert "| CAN | 1.00 / 2.00 | 3.00 / 4.00 |" in text

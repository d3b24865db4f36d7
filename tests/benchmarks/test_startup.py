"""The memory of a gateway with two media and of a tap's writer, held by the short form of the benchmark."""

from benchmarks.startup import GATEWAY_MIB, WRITER_MIB, start, writer_mib
from tests.helpers.ports import free_port


def test_a_gateway_with_two_media_is_small() -> None:
    found = start(free_port())
    assert found.memory_mib < GATEWAY_MIB
    assert found.ready_s > 0


def test_a_tap_s_writer_stays_small_when_it_has_finished_files() -> None:
    idle, busy = writer_mib(500, 6.0, free_port())
    assert idle < WRITER_MIB
    assert busy < WRITER_MIB

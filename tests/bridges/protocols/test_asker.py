"""Devices that are asked by time: how often one is asked that is silent."""

from bridges.protocols.asker import AWAY_S, Device


def test_a_silent_device_is_asked_half_as_often_each_time_up_to_a_bound() -> None:
    device, pauses_s = Device("pump", timeout_s=0.5), list[float]()
    for now_s in range(8):
        device.missed(now_s)
        pauses_s.append(device.away_s - now_s)
    assert pauses_s == [0.5, 1, 2, 4, 8, 16, AWAY_S, AWAY_S]
    device.answered()
    assert (device.misses, device.away_s) == (0, 0)

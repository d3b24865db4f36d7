from bus.hub import Hub
from bus.patch import join
from tests.helpers.peers import Ear


def test_two_hubs_are_one_bus_until_they_part() -> None:
    a, b = Hub("a"), Hub("b")
    on_a, on_b = join(a, b)
    ears = [Ear(a), Ear(a), Ear(b)]
    ears[0].say(b"1")
    ears[2].say(b"2", b"3")
    assert [ear.heard for ear in ears] == [[b"2", b"3"], [b"1", b"2", b"3"], [b"1"]]
    assert (on_a.stats.sent, on_a.stats.received) == (1, 2)
    assert on_a.stats.balance() == on_b.stats.balance() == 0
    on_b.close()
    on_a.close()
    ears[0].say(b"4")
    assert ears[2].heard == [b"1"]
    assert len(a.pipes) == 2
    assert len(b.pipes) == 1

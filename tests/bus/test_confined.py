"""What is told of a wire that ends within a process or a machine."""

from bus.confined import INPROC, Confined


def test_the_advice_follows_if_there_is_one() -> None:
    assert Confined("machine").text == "nobody outside this machine hears it"
    assert INPROC.text == "nobody outside this process hears it: other processes need tcp:// or ipc://"

"""The words for a defect, and its place: in the code of who has it, if that was reached."""

import pytest

from bus.defects import defect, unmade
from bus.wire.frame import pack


def test_the_place_is_that_in_the_package_and_not_in_what_it_called() -> None:
    with pytest.raises(ValueError, match="token") as raised:
        pack(1, ("gps",), b"")  # type: ignore[arg-type]
    found = defect("the medium", raised.value, __name__)
    assert found.startswith("the medium has a defect: FrameError: token 'gps'")
    assert "(test_defects.py:" in found
    assert "(frame.py:" in defect("the medium", raised.value, "elsewhere.link")


def test_the_words_are_of_one_line() -> None:
    with pytest.raises(KeyError) as raised:
        raise KeyError("two\nlines\x1b")
    assert "\n" not in defect("it", raised.value, __name__)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bus.hub:Hub", ""),
        ("a_library_that_is_missing.link:Link", "No module named 'a_library_that_is_missing'"),
        ("bus.nothing:Hub", "ModuleNotFoundError: No module named 'bus.nothing'"),
        ("bus.hub:Hubb", "AttributeError: module 'bus.hub' has no attribute 'Hubb'"),
    ],
)
def test_a_class_that_cannot_be_imported_is_told(name: str, words: str) -> None:
    assert words in unmade("the device", name)
    assert bool(words) is bool(unmade("the device", name))

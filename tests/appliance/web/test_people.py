"""People have tokens of their own: each line of their file is a name and one, and no two are alike."""

import pytest

from appliance.web.people import NOBODY, People, people_of

ANN, BOB = "ann-0123456789abc", "bob-0123456789abc"


def test_a_file_has_a_line_for_each_person() -> None:
    found = people_of(f"# who may\n\nann  {ANN}\nbob {BOB} \n")
    assert found == {"ann": ANN, "bob": BOB}
    people = People(found)
    assert [people.who(shown) for shown in (ANN, BOB, "", ANN[:-1], "é")] == ["ann", "bob", "", "", ""]
    assert not NOBODY
    assert NOBODY.who("") == ""


@pytest.mark.parametrize(
    "text",
    ["", "# nobody", "ann", "ann short", f"ann {ANN} x", f"ann {ANN}\nbob {ANN}", f"ann {ANN}\nann {BOB}"],
)
def test_another_file_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"line|people"):
        people_of(text)

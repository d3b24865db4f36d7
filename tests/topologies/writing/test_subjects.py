"""Subjects that are given out: `check --write` puts numbers in place of ranges, and moves none."""

from pathlib import Path

import pytest

from appliance.commandline.cli import main
from bus.errors import TopologyError
from tests.topologies.support import errors
from topologies.checks.checker import check
from topologies.loading.loader import loads
from topologies.picture.show import show
from topologies.wiring.segments import wired
from topologies.writing.subjects import give_out, written

TEXT = """\
name: t
gateways: {a: {address: 10.0.0.1, node: 5}, b: {address: 10.0.0.2, node: 6}}
bridges:
  near: {on: a, join: [{uart: /dev/ttyS0}, {can: {channel: can0, SUBJECTS}, segment: s}]}
  far: {on: b, join: [{uart: /dev/ttyS1}, {can: {channel: can0, OTHERS}, segment: s}]}
"""


def text_with(subjects: str, others: str) -> str:
    return TEXT.replace("SUBJECTS", f"subjects: {subjects}").replace("OTHERS", f"subjects: {others}")


def test_a_new_name_gets_the_next_number_and_moves_none() -> None:
    before = text_with("{a: 4100, z: 4100-4109, b: {subject: '4100-4109', priority: low}}", "{z: 4200-4201}")
    after = text_with("{a: 4100, z: 4101, b: {subject: 4102, priority: low}}", "{z: 4101}")
    given = give_out(wired(loads(before)))
    assert [str(one) for one in given] == ["z: 4101", "b: 4102", "z: 4101"]
    assert written(before, given) == after
    assert give_out(wired(loads(after))) == []
    more = after.replace("{a: 4100,", "{a: 4100, c: 4100-4109,")
    assert [str(one) for one in give_out(wired(loads(more)))] == ["c: 4103"]
    gap = after.replace("{a: 4100,", "{a: 4102, c: 4100-4102,").replace("4102, priority", "4107, priority")
    assert [str(one) for one in give_out(wired(loads(gap)))] == ["c: 4100"]
    inner = text_with("{a: 4100, b: 4102, c: 4100-4102}", "{a: 4100}")
    assert [str(one) for one in give_out(wired(loads(inner)))] == ["c: 4101"]


def test_a_full_range_and_a_range_from_a_variable_are_told() -> None:
    full = text_with("{a: 10, b: 10-10}", "{a: 10, b: 10-10}")
    with pytest.raises(TopologyError, match="all subjects of 10-10 are given out"):
        give_out(wired(loads(full)))
    variable = text_with('{a: "${IDS:-10-19}"}', "{a: 10}")
    with pytest.raises(TopologyError, match="does not stand here itself"):
        written(variable, give_out(wired(loads(variable))))


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_the_command_writes_the_file_and_leaves_the_rest(
    tmp_path: Path, ends: str, mark: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.yaml"
    text = text_with("{a: 20-29, b: {data_bytes: 3, subject: 20-29}}", "{a: 20-29}  # 20-29\n     ")
    path.write_bytes((mark + text.replace("\n", ends)).encode())
    path.chmod(0o640)
    main(["check", "--write", str(path)])
    told = capsys.readouterr().out
    assert f"{path}: a: 20\n{path}: b: 21\n" in told
    assert "no subject" not in told
    want = text_with("{a: 20, b: {data_bytes: 3, subject: 21}}", "{a: 20}  # 20-29\n     ")
    assert path.read_bytes() == (mark + want.replace("\n", ends)).encode()
    assert path.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in tmp_path.iterdir()] == ["t.yaml"]


@pytest.mark.parametrize(
    ("subjects", "others", "told"),
    [
        ("{a: 10}", "{a: 11}", "a is subject 10 to bridge near on a on this wire"),
        ("{a: 10}", "{b: 10}", "b: subject 10 is a to bridge near on a on this wire"),
        ("{a: 10}", "{}, subject: 10", "10 is the subject of TMQ"),
        ("{a: 10-11}", "{a: 10}", "a has no subject of 10-11 yet"),
    ],
)
def test_the_links_of_a_wire_agree(subjects: str, others: str, told: str) -> None:
    assert any(told in error for error in errors(text_with(subjects, others)))


def test_who_does_not_hear_a_pattern_and_who_uses_numbers_of_the_standard_is_warned() -> None:
    found = [str(one) for one in check(loads(text_with("{a: 10, b/c: 7000}", "{a: 10}")))]
    assert any("warning" in one and "does not hear b/c" in one for one in found)
    assert any("warning" in one and "b/c: subjects from 6144 on" in one for one in found)
    assert not any("does not hear a" in one for one in found)


def test_show_has_the_subjects() -> None:
    shown = show(loads(text_with("{a: 10, b/c: {subject: 11, priority: high, data_bytes: 3}}", "{}")))
    assert "a  subject 10\n" in shown
    assert "b/c  subject 11 high, 3 bytes" in shown

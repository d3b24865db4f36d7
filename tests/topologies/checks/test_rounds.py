"""`check` follows frames through sides that rename: a ring under other names is one, too."""

import pytest

from tests.topologies.support import GATEWAY, errors
from topologies.wiring.flow import Flow

BUSES = "buses: {a: {on: gw}, b: {on: gw}, c: {on: gw}}\n"


def plant(*sides: str, bridges: str = "") -> str:
    """Return two bridges from bus a to bus b, whose four sides have these settings more."""
    settings = [f", {one}" if one else "" for one in (*sides, "", "", "")]
    left = f"x: {{on: gw, join: [{{bus: a{settings[0]}}}, {{bus: b{settings[1]}}}]}}"
    right = f"y: {{on: gw, join: [{{bus: a{settings[2]}}}, {{bus: b{settings[3]}}}]}}"
    return f"{GATEWAY}{BUSES}bridges: {{{left}, {right}{bridges}}}\n"


LOOPS = {
    "the same prefix on both ways": ("prefix: h", "", "prefix: h", ""),
    "a longer name each time": ("prefix: h", "", "", ""),
    "a prefix here, taken off there": ("prefix: h", "", "", "strip: h"),
    "names that swap": ("rename: {t: u, u: t}", "", "", ""),
    "one name on one way only": ("rename: {t: u}", "", "", ""),
    "two names in two steps": ("rename: {t: u}", "", "rename: {t: u}", ""),
    "a name taken off on both sides is put on by the other way": ("strip: s", "", "", "strip: s"),
    "three tokens more and one less": ("prefix: h/h/h", "", "", "strip: h"),
    "a number of tokens, put back elsewhere": ("strip: 1", "", "strip: h", ""),
}
FREE = {
    "a filter keeps the new name in": ("prefix: h", "", "deny: h", ""),
    "only the name on the bus passes back": ("rename: {t: u}", "pattern: u", "pattern: t", ""),
    "names that swap, and a filter": ("rename: {t: u, u: t}", "", "pattern: t", ""),
    "a number of tokens that nobody puts back": ("strip: 1", "", "strip: 1", ""),
    "one way only": ("prefix: h", "", "allow: {in: h/none}, deny: {out: /}", ""),
    "without other names, other frames on each way": ("pattern: t", "", "pattern: u", ""),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_frame_that_goes_round_under_whatever_name_is_an_error(name: str) -> None:
    found = errors(plant(*LOOPS[name]))
    assert len(found) == 1, found
    assert found[0].startswith("frames would go round: bus a -> bridge")


def test_names_at_devices_alone_are_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 400 such devices, each of which brings a name, following all of them took 40 s."""
    monkeypatch.setattr(Flow, "crossed", lambda *_: pytest.fail("a frame is followed"))
    device = ", d: {on: gw, join: [{bus: a, prefix: d}, {uart: /dev/ttyS8, rename: {t: u}}]}"
    assert len(errors(plant("", bridges=device))) == 1


@pytest.mark.parametrize("name", FREE)
def test_a_frame_that_ends_is_none(name: str) -> None:
    assert errors(plant(*FREE[name])) == []


def test_the_error_says_under_which_name_it_comes_back() -> None:
    (text,) = errors(plant("prefix: h"))
    assert "comes back as h/h" in text


def test_trunks_keep_keys_whatever_the_name() -> None:
    trunk = "listen: {url: 'tcp://127.0.0.1:2500%d', trunk: true}"
    buses = f"buses: {{a: {{on: gw, {trunk % 1}}}, b: {{on: gw, {trunk % 2}}}}}\n"
    sides = "{bus: a, prefix: h}, bus: b"
    text = (
        f"{GATEWAY}{buses}bridges: {{x: {{on: gw, join: [{sides}]}}, y: {{on: gw, join: [bus: a, bus: b]}}}}"
    )
    assert errors(text) == []
    assert len(errors(text.replace("bus: b]", "{bus: b, trunk: false}]"))) >= 1


def test_no_ring_is_none_whatever_is_renamed() -> None:
    more = ", z: {on: gw, join: [{bus: b, prefix: q}, {bus: c, strip: r}]}"
    text = plant("prefix: h", bridges=more)
    assert errors(text.replace("y: {on: gw, join: [{bus: a}, {bus: b}]}, ", "")) == []

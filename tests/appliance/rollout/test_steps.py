"""The messages of a roll-out: what is cut off or is none is refused."""

import pytest

from appliance.rollout.steps import Answer, Asked, pack, unpack_answer, unpack_asked

ASKED = Asked("apply", "gw-a", "1f", "me", "name: é\n", "00", True)
ANSWER = Answer("no", True, "00", "ok", "ok", ("a", "b"))


def test_there_and_back() -> None:
    assert unpack_asked(pack(ASKED)) == ASKED
    assert unpack_answer(pack(ANSWER)) == ANSWER


def test_each_cut_is_refused() -> None:
    whole = pack(ASKED)
    for size in range(len(whole)):
        with pytest.raises(ValueError, match=r"cut off|no message"):
            unpack_asked(whole[:size])


@pytest.mark.parametrize(
    "data",
    [b"[]\n", b"{}\n", b'{"step": "rm", "gateway": "x"}\n', b'{"step": "look", "gateway": 1}\n',
     b'{"step": "look", "gateway": "x", "force": "yes"}\n', b"[" * 9999 + b"\n"],
)  # fmt: skip
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="no "):
        unpack_asked(data)

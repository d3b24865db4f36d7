"""Identifiers of CAN frames are printed as the user writes them, wherever patterns of a file are printed."""

from pathlib import Path

import pytest

from appliance.commandline.cli import main

FILE = """\
name: c
gateways: {{gw: {{address: 127.0.0.1, node: 1}}}}
buses: {{hall: {{on: gw, listen: "tcp://127.0.0.1:{port}"}}}}
bridges:
  car:
    on: gw
    pattern: car/{id}
    join:
      - {{bus: hall, allow: [car/{id}, [car, {other}]]}}
      - can: {{channel: can0}}
        protocol: {{raw: {{root: car, send: [{id}]}}}}
        limits: [{{pattern: car/{id}, frames_per_s: 10, direction: out}}]
"""


@pytest.mark.parametrize(
    ("word", "other"), [("0x181", "0x182"), ("0x18fef100x", "0x18fef101x"), ("0x123r", "0x124r")]
)
@pytest.mark.parametrize("command", ["show", "check", "explain"])
def test_an_identifier_is_printed_as_it_is_written(
    command: str, word: str, other: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "car.yaml"
    path.write_text(FILE.format(id=word, other=other, port=25913))
    words = {
        "show": ["show", str(path)],
        "check": ["check", str(path)],
        "explain": ["explain", f"car/{word}", str(path), "--from", "hall"],
    }[command]
    main(words)
    printed = "".join(capsys.readouterr())
    assert f"car/{word}" in printed
    assert "0x00000" not in printed
    assert not word.endswith("x") or f"0x{0x98FEF100:08x}" not in printed

"""Wrong words on the command line: one line that names each thing once, and the exit status of wrong use."""

from pathlib import Path

import pytest

from appliance.commandline.cli import main

PLANT = """\
name: plant
gateways: {gw: {address: 127.0.0.1}}
buses: {plant: {on: gw, listen: ["tcp://127.0.0.1:5555"]}}
"""
USE, FAULT = 2, 1


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory with a topology, a log, and a directory, in which this test runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plant.yaml").write_text(PLANT)
    (tmp_path / "a.log").write_text("(1436509052.249713) can0 123#1122\n")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("status", "words", "said"),
    [
        (USE, "show plant.yaml --svg --format mermaid", "--svg is --format svg, and --format mermaid is"),
        (USE, "show plant.yaml --format text --svg", "and --format text is another form"),
        (USE, "capture export a.log out.foo", "out.foo: its suffix .foo names no format: use one of .log"),
        (USE, "capture export a.log x.xlsx.gz", "its suffix .xlsx names no format"),
        (USE, "capture export a.log folder", "folder: is a directory: give the name of a file"),
        (FAULT, "capture export a.log none/x.blf", "none/x.blf: No such file or directory"),
        (FAULT, "capture import a.log --directory a.log", "a.log: is no directory"),
        (FAULT, "capture tcp://127.0.0.1:1 --directory a.log", "a.log: is no directory"),
        (USE, "capture foo:bar --directory d", "'foo:bar' is no endpoint"),
        (USE, "capture replay a.log foo:bar", "'foo:bar' is no endpoint"),
        (FAULT, "create x.yaml --yes --listen-to /dev/nope", "under another name: look for its name"),
        (FAULT, "create x.yaml --yes --listen-to /dev/null", "is no serial line (Inappropriate ioctl"),
        (FAULT, "create folder --yes --nothing --force", "folder: cannot write the topology: Is a directory"),
        (FAULT, "create none/x.yaml --yes --nothing", "none/x.yaml: cannot write the topology: No such file"),
        (USE, "create x.yaml --yes --listen ftp://x", "--listen: ftp://x: an address must start with"),
        (USE, "create x.yaml --yes --name a:b", '--name: "a:b" is no name'),
        (USE, "create x.yaml --yes --gateway a:b", '--gateway: "a:b" is no name'),
        (FAULT, "journal none", "none: No such file or directory"),
        (FAULT, "journal a.log", "a.log: no journal is here: name the directory of a durable trunk"),
        (FAULT, "journal verify a.log", "a.log: no journal is here: name the directory of a durable trunk"),
        (FAULT, "key new a.log", "a.log is there already, and is left as it is: choose another name"),
        (FAULT, "key new none/x", "none/x: cannot write the key: No such file or directory"),
        (FAULT, "cert show none", "none: cannot read it: No such file or directory"),
        (USE, "traffic can:nope0 --dbc none.dbc", "none.dbc: No such file or directory"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_line_that_names_each_thing_once(
    place: Path, capsys: pytest.CaptureFixture[str], status: int, words: str, said: str
) -> None:
    try:
        found = main(words.split())
    except SystemExit as stopped:
        found = int(str(stopped.code))
    out, err = capsys.readouterr()
    assert said in err
    assert (found, out, len(err.splitlines())) == (status, "", 1)
    assert "-> None" not in err
    for word in words.split():
        assert f": '{word}'\n" not in err


def test_svg_twice_is_svg(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "plant.yaml", "--svg", "--format", "svg"]) == 0
    assert capsys.readouterr().out.startswith("<svg")

"""`buscoupler install` and `uninstall`: the files come, change and go, and what cannot work is refused."""

import re
import shutil
from pathlib import Path

import pytest

from appliance.commandline.cli import main
from tests.appliance.service.plans import RULES, TEXT, UNIT


@pytest.fixture
def world(tmp_path: Path) -> tuple[Path, list[str]]:
    """A root, and the words that install a topology below it."""
    root = tmp_path / "root"
    file = root / "etc/buscoupler/plant.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(TEXT.replace("keys: [/etc/buscoupler/plant.key]\n", ""))
    (root / "usr/bin").mkdir(parents=True)
    shutil.copy("/bin/true", root / "usr/bin/true")
    words = [str(file), "--gateway", "gw-a", "--root", str(root), "--program", "/usr/bin/true"]
    return root, ["install", *words]


def files_below(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_installing_again_changes_nothing_and_uninstalling_takes_all_back(
    world: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    root, words = world
    before = files_below(root)
    assert main(words) == 0
    said = capsys.readouterr().out
    assert f"wrote {UNIT}" in said
    assert "systemctl enable buscoupler" in said
    assert "udevadm control --reload" in said
    unit_text = (root / UNIT.lstrip("/")).read_text()
    assert "ExecStart=/usr/bin/true run /etc/buscoupler/plant.yaml --gateway gw-a --real-time\n" in unit_text
    assert main(words) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[:4]] == ["unchanged"] * 4
    assert main(["uninstall", "--root", str(root)]) == 0
    assert "systemctl stop buscoupler" in capsys.readouterr().out
    assert files_below(root) == before
    assert main(["uninstall", "--root", str(root)]) == 1


SECRETS = """
  other:
    on: gw-b
    listen: {url: "tls+tcp://127.0.0.1:56", tls: {cert_file: /etc/ssl/gw.pem, key_file: /srv/tls/gw.key}}
"""


def test_files_that_its_user_could_not_read_are_told(
    world: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    root, words = world
    topology, key = root / "etc/buscoupler/plant.yaml", root / "srv/tls/gw.key"
    topology.write_text(re.sub(r"\n  other: .*\n", SECRETS, topology.read_text()))
    for path, mode in ((root / "etc/ssl/gw.pem", 0o644), (key, 0o644)):
        path.parent.mkdir(parents=True)
        path.write_text("")
        path.chmod(mode)
    topology.parent.chmod(0o700)  # which is made the service's
    words = [word.replace("gw-a", "gw-b") for word in words]

    def told() -> list[str]:
        assert main(words) == 0
        return [line.partition(": ")[2] for line in capsys.readouterr().err.splitlines()]

    assert told() == []
    key.chmod(0o600)
    key.parent.chmod(0o710)
    (said,) = told()
    owner = f"{key.owner()}:{key.group()}"
    assert said.startswith(
        f"/srv/tls/gw.key: the user buscoupler may not read it: /srv/tls is {owner} 0710: "
    )
    key.parent.chmod(0o755)
    topology.chmod(0o640)
    assert [re.findall(r"(/\S+) is \S+ (\d+)", line) for line in told()] == [
        [("/etc/buscoupler/plant.yaml", "0640")], [("/srv/tls/gw.key", "0600")],
    ]  # fmt: skip
    key.unlink()
    topology.chmod(0o644)
    assert told() == []


def test_a_file_that_a_new_plan_does_not_have_goes(
    world: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    root, words = world
    assert main(words) == 0
    assert main([word.replace("gw-a", "gw-b") for word in words]) == 0
    assert f"removed {RULES}" in capsys.readouterr().out
    assert not (root / RULES.lstrip("/")).exists()


def test_a_dry_run_prints_the_files_and_writes_none(
    world: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    root, words = world
    before = files_below(root)
    assert main([*words, "--dry-run"]) == 0
    assert f"## {UNIT}\n# Written by" in capsys.readouterr().out
    assert files_below(root) == before


def test_a_file_that_somebody_else_wrote_is_left_alone(
    world: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    root, words = world
    path = root / UNIT.lstrip("/")
    path.parent.mkdir(parents=True)
    path.write_text("[Service]\n")
    before = files_below(root)
    assert main(words) == main(["uninstall", "--root", str(root)]) == 1
    assert "was not written by" in capsys.readouterr().err
    assert path.read_text() == "[Service]\n"
    assert files_below(root) == before


PASSWD = "root:x:0:0:root:/root:/bin/sh\nplant:x:9:9::/var/lib/plant:/bin/false\nmail:x:8:8::/var/mail:/x\n"


@pytest.mark.parametrize(
    ("name", "place", "whose"),
    [
        ("root", "", "the user root is another's"),
        ("mail", "", "the user mail is another's"),
        ("docker", "", "the group docker is another's"),
        ("ssh", "usr/lib/systemd/system/ssh.service", "/usr/lib/systemd/system/ssh.service is another's"),
        ("dpkg", "var/lib/dpkg/status", "/var/lib/dpkg is another's"),
        ("ssl", "etc/ssl/certs", "/etc/ssl is another's"),
        ("plant", "var/lib/plant/state", ""),
        ("new", "", ""),
    ],
)
def test_a_name_that_belongs_to_something_else_is_refused(
    name: str, place: str, whose: str, world: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    root, words = world
    (root / "etc" / "passwd").write_text(PASSWD)
    (root / "etc" / "group").write_text("docker:x:7:me\nplant:x:9:\n")
    if place:
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).touch()
    before = files_below(root)
    status = main([*words, "--name", name])
    assert (whose in capsys.readouterr().err, status) == (True, int(bool(whose)))
    assert (set(files_below(root)) == set(before)) == bool(whose)


def test_a_gateway_that_is_not_there_is_refused(
    world: tuple[Path, list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.replace("gw-a", "gw-x") for word in world[1]]) == 1
    assert 'no gateway "gw-x" in plant: gw-a, gw-b' in capsys.readouterr().err

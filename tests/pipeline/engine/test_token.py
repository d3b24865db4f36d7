"""The token of `pipeline serve`: who gets it, and where our own client finds it."""

import os
import stat
import sys
from pathlib import Path

import pytest

from pipeline.engine import serve, server
from pipeline.engine.choice import Where
from pipeline.engine.jvm import until
from pipeline.engine.session import for_local, settings, with_token
from pipeline.errors import PipelineError
from tests.helpers.ports import free_port

LISTENS = """
import os, socket, sys
sock = socket.create_server(("127.0.0.1", int(sys.argv[1])))
open("seen", "w").write(os.environ["SPARK_CONNECT_AUTHENTICATE_TOKEN"])
while True:
    sock.accept()[0].close()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the files by which commands find a Spark."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv(server.TOKEN, raising=False)
    return tmp_path / "buscoupler" / "spark"


def test_the_token_is_in_a_file_of_its_user_as_long_as_the_server_runs(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setattr(serve, "command", lambda *_: [sys.executable, "-c", LISTENS, str(port)])
    before = os.umask(0)
    try:
        with serve.running(port, "1g", tmp_path / "log") as process:
            token = server.token_of(port)
            assert len(token) > 40
            until(lambda: (tmp_path / "seen").exists() and (tmp_path / "seen").read_text() != "", 10.0)
            assert (tmp_path / "seen").read_text() == token
            assert token not in Path(f"/proc/{process.pid}/cmdline").read_text()
            assert stat.S_IMODE((place / f"connect-{port}.token").stat().st_mode) == 0o600
            assert stat.S_IMODE(place.stat().st_mode) == 0o700
            assert with_token(f"sc://127.0.0.1:{port}") == f"sc://localhost:{port}/;token={token}"
    finally:
        os.umask(before)
    assert process.poll() is not None
    assert list(place.iterdir()) == []
    assert with_token(f"sc://127.0.0.1:{port}") == f"sc://127.0.0.1:{port}"


def test_a_server_that_does_not_start_leaves_no_token(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "command", lambda *_: [sys.executable, "-c", "raise SystemExit('no room')"])
    with pytest.raises(PipelineError, match="did not start: no room"):
        with serve.running(free_port(), "1g", tmp_path / "log"):
            pass
    assert not place.exists()


def test_only_our_own_server_on_this_machine_gets_our_token(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.mkdir(parents=True)
    for port in (15002, 7):
        server.token_file(port).write_text("T")
    assert with_token(serve.url(7)) == f"{serve.url(7)};token=T"
    assert with_token("sc://localhost") == with_token("sc://127.0.0.1/") == "sc://localhost:15002/;token=T"
    for other in (
        "sc://head:15002",
        "sc://10.0.0.1:7",
        "sc://localhost:8",
        "sc://localhost:7/;token=mine",
        "x",
    ):
        assert with_token(other) == other
    monkeypatch.setenv(server.TOKEN, "mine")
    assert with_token(serve.url(7)) == serve.url(7)


@pytest.mark.parametrize(("umask", "words"), [(0, "027"), (0o022, "027"), (0o077, "077")])
def test_files_of_a_local_spark_are_not_for_others_and_its_ports_ask_for_a_secret(
    umask: int, words: str
) -> None:
    before = os.umask(umask)
    try:
        found = settings(Where(), ours=True)
    finally:
        os.umask(before)
    assert found["spark.hadoop.fs.permissions.umask-mode"] == words
    assert found["spark.authenticate"] == "true"
    assert for_local().items() <= settings(Where(), ours=True).items()
    assert "spark.authenticate" not in settings(Where(master="spark://head:7077"), ours=True)

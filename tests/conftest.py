"""Fixtures that all tests share, and the room of each test."""

import gc
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.helpers import ROOT, guard, guests
from tests.helpers.reports import Results
from tests.helpers.rooms import turn
from tests.helpers.sharing import import_in_turn, import_without_asammdf

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling

with suppress(ModuleNotFoundError):  # the machine of tests/kernel has none
    from hypothesis import settings

    # A slow machine must not fail a test, and a run tries the inputs of the run before; `make fuzz`, others.
    settings.register_profile("steady", deadline=None, derandomize=True)
    settings.register_profile("fuzz", deadline=None, max_examples=1000)
    settings.load_profile("steady")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only tests that tests/slow.txt does not name")


def pytest_configure(config: pytest.Config) -> None:
    guard.install()
    if config.getoption("quick"):
        _without_constants()
    if hasattr(config, "workerinput"):
        config.pluginmanager.register(Results())


def _find_characters(config: pytest.Config) -> None:
    """Let Hypothesis find out which characters there are while processes of this one import tests: it takes
    seconds and is kept in a file, and else each of them would do it."""
    if not config.getoption("numprocesses", None):  # as in each of them
        return
    with suppress(ModuleNotFoundError):
        from hypothesis import strategies

        some = strategies.characters(codec="utf-8", categories=["L"])
        threading.Thread(target=some.validate, daemon=True).start()


def _without_constants() -> None:
    """Let Hypothesis read no sources for constants to try, which takes each process seconds: `make test`
    tries them."""
    with suppress(ModuleNotFoundError):
        from hypothesis.internal.conjecture import providers

        none = providers._local_constants  # noqa: SLF001 (there is no setting)
        pytest.MonkeyPatch().setattr(providers, "_get_local_constants", lambda: none)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out whole folders and modules without importing them."""
    name = str(collection_path.relative_to(ROOT)) + "/" * collection_path.is_dir()
    return True if config.getoption("quick") and guard.is_slow(name) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Keep what is collected out of all searches for garbage: it stays, and each search would take longer."""
    _find_characters(session.config)
    gc.disable()
    try:
        import_without_asammdf()
        import_in_turn(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is slow if only quick tests run, and let what takes longest begin first."""
    if config.getoption("quick"):
        left_out = [item for item in items if guard.is_slow(item.nodeid)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in set(left_out)]
    items.sort(key=lambda item: turn(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> "Scheduling":
    """Give each process of `make test` whole rooms."""
    from tests.helpers.scheduler import Rooms

    return Rooms(config, log)


@pytest.fixture(scope="session", autouse=True)
def own_directories() -> Iterator[None]:
    """Directories of this run: its processes are no neighbours of other runs, and leave nothing."""
    directory = tempfile.mkdtemp(prefix="bc-tests-")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", directory)
        patch.setenv("XDG_STATE_HOME", f"{directory}/state")
        patch.setenv("TMPDIR", directory)
        yield
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def no_guests_left() -> Iterator[None]:
    """Close what servers of tests have accepted with the loop of the test."""
    with pytest.MonkeyPatch.context() as patch:
        guests.close_with_loops(patch)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_deaf_children() -> None:
    """Let processes of tests hear SIGINT, which a shell has what it runs in the background ignore."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def socket_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A short path for a local socket, because the kernel's limit is 107 bytes."""
    return tmp_path_factory.mktemp("s") / "s"

"""The lock of the appliance: all that `pyproject.toml` asks for and that this needs, with hashes."""

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.helpers import ROOT

ENTRY = re.compile(r"^([\w.-]+)==(\S+)((?: \\\n +--hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE)
TEXT = (ROOT / "requirements.lock").read_text()
LOCKED = {name: version for name, version, _ in ENTRY.findall(TEXT)}


def asked() -> list[Requirement]:
    """Return the requirements of a plain install, and of the extras that the Makefile names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = re.search(r"^LOCKED := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found is not None
    extras = [text for extra in found[1].split() for text in project["optional-dependencies"][extra]]
    return [Requirement(text) for text in (*project["dependencies"], *extras)]


def needed(wanted: list[Requirement]) -> Iterator[str]:
    """Yield the names of these packages as they are installed here, and of all that they need."""
    for one in wanted:
        yield canonicalize_name(one.name)
        try:
            more = [Requirement(text) for text in requires(one.name) or ()]
        except PackageNotFoundError:
            pytest.skip(f"{one.name} is not installed")
        extras = one.extras or {""}
        apply = [
            need
            for need in more
            if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras)
        ]
        yield from needed(apply)


def test_each_requirement_is_locked_in_a_version_that_it_allows() -> None:
    for one in asked():
        version = LOCKED[canonicalize_name(one.name)]
        assert one.specifier.contains(version), f"{one} and {version}: run make lock"


def test_all_that_these_need_is_locked_and_nothing_else() -> None:
    assert set(needed(asked())) == set(LOCKED), "run make lock"


def test_every_entry_has_hashes_and_no_line_names_a_place() -> None:
    entries = [line for line in TEXT.splitlines() if line and line[0] not in " #"]
    assert len(entries) == len(LOCKED)
    assert "://" not in TEXT
    assert not re.search(r"^-", TEXT, re.MULTILINE)

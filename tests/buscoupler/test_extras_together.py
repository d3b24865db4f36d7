"""Any extras in one environment: one version of each package suits all of them, and none overwrites another.

What is installed here is that version: so nothing is asked of a registry, and each pair is tried at once.
"""

import tomllib
from collections import Counter
from importlib.metadata import Distribution, PackageNotFoundError, distribution

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.helpers import ROOT

OURS = {"bench", "docs", "quick", "dev", "fuzz"}
"""The extras of who works on the appliance."""
CLIENT = "pyspark-client"
"""The one that may not stand beside pyspark, which tests/pipeline/engine/test_choice.py is about."""


def asked() -> list[Requirement]:
    """Return what all extras for users ask for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert set(extras) > OURS
    texts = [text for extra, some in extras.items() if extra not in OURS for text in some]
    wanted = [Requirement(text) for text in (*project["dependencies"], *texts)]
    return [one for one in wanted if one.name != "buscoupler"]


def found() -> tuple[dict[str, Distribution], list[str]]:
    """Return the distributions that all extras need, and what these here do not satisfy."""
    wanted, seen, wrong, here = asked(), set[str](), list[str](), dict[str, Distribution]()
    missing = set[str]()
    while wanted:
        one = wanted.pop()
        if str(one) in seen:
            continue
        seen.add(str(one))
        name = canonicalize_name(one.name)
        try:
            here[name] = distribution(name)
        except PackageNotFoundError:
            missing.add(name)
            continue
        if not one.specifier.contains(here[name].version, prereleases=True):
            wrong.append(f"{one}: here is {here[name].version}")
        needs = map(Requirement, here[name].requires or ())
        wanted += [need for need in needs if applies(need, one.extras)]
    if missing - {CLIENT}:
        pytest.skip(f"not installed: {', '.join(sorted(missing))}")
    return here, wrong


def applies(need: Requirement, extras: set[str]) -> bool:
    return need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras or {""})


def test_all_extras_are_satisfied_by_the_same_versions() -> None:
    _, wrong = found()
    assert not wrong


def test_no_package_of_an_extra_has_a_file_of_another() -> None:
    here, _ = found()
    written = Counter(
        str(file)
        for one in here.values()
        for file in one.files or ()
        if file.parts[0] != ".." and not file.parts[0].endswith((".dist-info", ".egg-info"))
    )
    assert not [name for name, times in written.items() if times > 1]

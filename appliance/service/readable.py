"""The files that a service reads, as its user finds them: `install` warns of those that it may not open."""

import grp
import os
import pwd
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from stat import S_IMODE, S_IROTH, S_IXOTH
from typing import Final

from appliance.service.plan import Plan

_SHIFTS: Final = 6, 3, 0
"""The places of the bits of owner, group and others in a mode."""


def unreadable(plan: Plan, root: Path) -> Iterator[str]:
    """Yield why the user of a service may not read a file of its plan, a line for each.

    A file that is not there, or that this user may not look at, has none. The directory of the service, and
    its secrets there, get their group when it is installed.
    """
    ids, made = _ids(plan.name), PurePosixPath(f"/etc/{plan.name}")
    for path in plan.read:
        if path in plan.secrets or not path.startswith("/"):
            continue
        steps = (step for place in _places(path, root) for step in _steps(place, made))
        if found := next(filter(None, (_refused(root, one, bit, ids) for one, bit in steps)), ""):
            advice = f"move it below {made}, or let that user read it"
            yield f"{path}: the user {plan.name} may not read it: {found}: {advice}"


def _places(path: str, root: Path) -> Iterator[PurePosixPath]:
    """Yield a path, and that behind its links; those of an image can only be followed there."""
    yield PurePosixPath(path)
    if root == Path("/"):
        yield PurePosixPath(os.path.realpath(path))


def _steps(place: PurePosixPath, made: PurePosixPath) -> Iterator[tuple[PurePosixPath, int]]:
    """Yield what is passed on the way to a file, and the file, each with the bit that others need there."""
    yield from ((one, S_IXOTH) for one in reversed(place.parents) if one != made)
    yield place, S_IROTH


def _refused(root: Path, place: PurePosixPath, bit: int, ids: tuple[int, int]) -> str:
    """Return why a user may not do something at a place; "" if it may, or if that cannot be told."""
    try:
        found = os.stat(root / place.relative_to("/"))
    except OSError:
        return ""
    owner, group, others = _SHIFTS
    shift = owner if found.st_uid == ids[0] else group if found.st_gid == ids[1] else others
    if found.st_mode >> shift & bit:
        return ""
    return f"{place} is {_name(found.st_uid, found.st_gid)} {S_IMODE(found.st_mode):04o}"


def _ids(name: str) -> tuple[int, int]:
    """Return the user and group of a name; numbers that nobody has, while there are none."""
    try:
        user = pwd.getpwnam(name).pw_uid
    except KeyError:
        user = -1
    try:
        return user, grp.getgrnam(name).gr_gid
    except KeyError:
        return user, -1


def _name(user: int, group: int) -> str:
    try:
        return f"{pwd.getpwuid(user).pw_name}:{grp.getgrgid(group).gr_name}"
    except KeyError:
        return f"{user}:{group}"

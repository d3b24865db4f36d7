"""Finds which process holds a port, a socket file or a device, as far as /proc tells this user.

A look takes some milliseconds, and no more of the processor than `LOOK_S`: it is for errors only.
"""

import errno
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from bus.errors import why_of
from bus.text import plain

LOOK_S: Final = 0.05
_ROWS_MAX: Final = 20_000  # of a table of sockets
_MASTER: Final = "/dev/ptmx"
_LISTENS: Final = "0A"  # the state of a TCP socket
Wanted = Callable[[str], bool]


def holder_of_port(address: tuple[str, int], udp: bool = False) -> str:
    """Return who has the port of an IP address, in words such as `nginx (process 812)`; "" if unknown."""
    host, port = address[:2]
    found = list(_inodes(host, port, "udp" if udp else "tcp"))
    if not found:
        return ""
    sockets = {f"socket:[{inode}]" for inode, _ in found}
    return _process(sockets.__contains__) or f"a process of the user with number {found[0][1]}"


def holder_of_socket(path: str) -> str:
    """Return who listens at a Unix socket, in words; "" if unknown."""
    sockets = {
        f"socket:[{row[6]}]" for row in _rows("unix") if len(row) > 7 and row[7] == path and row[6].isdigit()
    }
    return _process(sockets.__contains__) if sockets else ""


def holder_of_file(path: str) -> str:
    """Return which other process has a file or device open, in words; "" if none is seen.

    The maker of a pseudo-terminal, such as socat, has the end of the device open without using it.
    """
    real, own = os.path.realpath(path), f"{os.getpid()}"
    return _process(real.__eq__, skip=own, unless=_MASTER if real.startswith("/dev/pts/") else "")


def holding_words(error: OSError, path: str) -> str:
    """Return why a device could not be opened; where a process has it, even this one, say which.

    A lock that is taken says that there is one, also where the look did not find it.
    """
    if error.errno in (errno.ENOENT, errno.ENODEV, errno.ENXIO):
        return f"{why_of(error)}: unplugged, or under another name"
    is_held = error.errno in (errno.EBUSY, errno.EAGAIN)
    holder = (holder_of_file(path) or _process(os.path.realpath(path).__eq__)) if is_held else ""
    if not holder and error.errno == errno.EAGAIN:
        holder = "another process"
    return f"{path} is in use by {holder}" if holder else why_of(error)


def words_of_process(number: int | str) -> str:
    """Return a process in the words of a holder, such as `nginx (process 812)`."""
    return f"{_name(number)} (process {number})"


def _inodes(host: str, port: int, kind: str) -> Iterator[tuple[str, str]]:
    """Yield the number and the user's number of each socket that is bound to the port at that host."""
    for table in (kind, f"{kind}6"):
        for row in _rows(table):
            if len(row) > 9 and (kind != "tcp" or row[3] == _LISTENS) and _meets(row[1], host, port):
                yield row[9], row[7]


def _rows(table: str) -> Iterator[list[str]]:
    with suppress(OSError), open(f"/proc/net/{table}", encoding="ascii", errors="replace") as lines:
        next(lines, "")
        for _, line in zip(range(_ROWS_MAX), lines, strict=False):
            yield line.split()


def _meets(written: str, host: str, port: int) -> bool:
    """Return whether a bound address, as the kernel writes it, keeps others from `host` and `port`."""
    digits, _, number = written.partition(":")
    if int(number or "0", 16) != port:
        return False
    bound = _packed(digits)
    wanted = socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host.partition("%")[0])
    return not any(bound) or not any(wanted) or bound[-len(wanted) :] == wanted


def _packed(digits: str) -> bytes:
    """Return the bytes of an address of /proc/net: words of 32 bits in the order of the machine."""
    words = (int(digits[at : at + 8], 16) for at in range(0, len(digits), 8))
    return b"".join(struct.pack("=I", word) for word in words)


def _process(wanted: Wanted, skip: str = "", unless: str = "") -> str:
    """Return the first process with an open file whose link is wanted, in words; "" if none is seen.

    One with the file `unless` open does not count.
    """
    until_s, own = time.thread_time() + LOOK_S, f"{os.getpid()}"
    others = sorted((int(name) for name in os.listdir("/proc") if name.isdigit()), reverse=True)
    for number in (own, *map(str, others)):
        if time.thread_time() > until_s:
            return ""
        links = [*_links(number)] if number != skip else []
        if any(map(wanted, links)) and unless not in links:
            return "this process" if number == own else words_of_process(number)
    return ""


def _links(number: str) -> Iterator[str]:
    directory = f"/proc/{number}/fd"
    with suppress(OSError):  # of another user, or gone
        for file in os.listdir(directory):
            with suppress(OSError):
                yield os.readlink(f"{directory}/{file}")


def _name(number: int | str) -> str:
    with suppress(OSError), open(f"/proc/{number}/comm", encoding="utf-8", errors="replace") as file:
        return plain(file.read().strip()) or "a process"
    return "a process"

"""Inspects this machine: whether it meets the need of a link, and what to do if not. It opens no device."""

import errno
import grp
import os
import pwd
import socket
import ssl
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from appliance.web.people import token_in
from bus.errors import LinkError, words_of
from bus.extras import absent
from bus.keys import read_key
from bus.kinds import load
from bus.machine.files import NotRegular, check_regular, read_text, unfit_pem
from bus.machine.holders import holder_of_file, holder_of_socket
from bus.machine.lasting import doubt, span
from bus.machine.permissions import exposure
from bus.needs import (
    Authorities,
    Certificate,
    Device,
    Directory,
    KeyFile,
    Lasting,
    Library,
    Listening,
    Lookup,
    Need,
    PageToken,
    Probe,
    Readable,
    Room,
    Secret,
    SocketFile,
    Sockets,
)
from bus.transports.binding import SocketPlace, bind_words, resolve

_FILES_MAX = 100_000
_MEMORY = 1  # the major number of /dev/null and its like, which many processes have open


def trouble(need: Need) -> str:
    """Return why this machine does not meet a need, and what to do about it; "" if it does."""
    return _LOOKS[type(need)](need)


def is_here(host: str) -> bool:
    """Return whether a host is an address of this machine."""
    with suppress(OSError, UnicodeError):
        for family, _, _, _, address in socket.getaddrinfo(host, 0, type=socket.SOCK_DGRAM):
            with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as sock:
                sock.bind(address)
                return True
    return False


def _library(need: Library) -> str:
    return absent("it", need)


def _device(need: Device) -> str:
    try:
        status = os.stat(need.path)
    except OSError as error:
        return f"{need.path}: {words_of(error).partition(':')[0]}: {need.advice}"
    if not stat.S_ISCHR(status.st_mode):
        return f"{need.path} is no device: {need.advice}"
    if os.access(need.path, os.R_OK | os.W_OK):
        holder = holder_of_file(need.path) if need.alone and os.major(status.st_rdev) != _MEMORY else ""
        return f"{need.path} is in use by {holder}" if holder else ""
    user = _name(pwd.getpwuid, os.geteuid())
    group = _name(grp.getgrgid, status.st_gid)
    return f"{need.path}: {user} may not read and write it: run usermod -aG {group} {user}"


def _name(entry: Callable[[int], Any], number: int) -> str:
    try:
        return str(entry(number)[0])
    except KeyError:
        return str(number)


def _listening(need: Listening) -> str:
    places: list[SocketPlace] = []
    try:
        places = resolve((0, ("" if need.host == "*" else need.host, need.port)))
        family, address = places[0]
        with socket.socket(family, socket.SOCK_DGRAM if need.udp else socket.SOCK_STREAM) as sock:
            if not need.udp:  # there it would share the port
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind(address)
    except (OSError, UnicodeError) as error:
        port = f" on {'UDP' if need.udp else 'TCP'} port {need.port}" if need.port else ""
        words = bind_words(error, places[0] if places else None, need.udp)
        return f"cannot listen at {need.host}{port}: {words}"
    return ""


def _socket_file(need: SocketFile) -> str:
    parent = Path(need.path).absolute().parent
    if not os.path.isdir(parent):
        return f"{need.path}: there is no directory {parent}: run mkdir -p {parent}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.setblocking(False)
        if sock.connect_ex(need.path) not in (0, errno.EAGAIN):
            free = _is_free(need.path)
            return _directory(Directory(str(parent))) if free else f"{need.path} is no socket: choose another"
    holder = holder_of_socket(need.path)
    return f"{need.path} is in use{f' by {holder}' if holder else ''}: run ss -lxp src {need.path}"


def _is_free(path: str) -> bool:
    return not os.path.lexists(path) or stat.S_ISSOCK(os.lstat(path).st_mode)


def _lookup(need: Lookup) -> str:
    try:
        socket.getaddrinfo(need.host, None, socket.AF_INET if need.ipv4 else 0, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        kind = " as IPv4" if need.ipv4 else ""
        return f"{need.host} cannot be looked up{kind}: {words_of(error)}: write an address, or add it to DNS"
    return ""


def _readable(need: Readable) -> str:
    try:
        check_regular(need.path)  # a pipe would let us wait
        with open(need.path, "rb"):
            return ""
    except OSError as error:
        return _unread(need.path, error)


def _unread(path: str, error: OSError) -> str:
    """Return why a file cannot be read, and what to do about it."""
    if isinstance(error, NotRegular):
        return f"{path}: {words_of(error)}: correct the path"
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return f"{path}: {os.strerror(error.errno)}: make it, or correct the path"
    user = _name(pwd.getpwuid, os.geteuid())
    return f"{path}: {os.strerror(error.errno or 0)}: make it readable for {user}"


def _page_token(need: PageToken) -> str:
    try:
        token_in(need.path, read_text)
    except OSError as error:
        return _unread(need.path, error)
    except ValueError as error:
        return str(error)
    return ""


def _key_file(need: KeyFile) -> str:
    try:
        read_key(need.path)
    except LinkError as error:
        return str(error)
    return ""


def _certificate(need: Certificate) -> str:
    if found := unfit_pem(need.files):
        return found
    with suppress(OSError):  # told by `Readable`
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*need, password=lambda: b"")
        except ssl.SSLError:
            files = f"{need.key_file} is not the key of {need.cert_file}"
            return f"{files}, or one of them is damaged, or needs a password"
    return ""


def _lasting(need: Lasting) -> str:
    found = span(need.path, need.trusted)
    return "" if found is None else doubt(need.path, found, time.time())


def _secret(need: Secret) -> str:
    return exposure(need.path)


def _directory(need: Directory) -> str:
    path, there = Path(need.path).absolute(), _existing(need.path)
    if not there.is_dir():
        return f"{there} is no directory: choose another path than {path}"
    if os.access(there, os.W_OK | os.X_OK):
        return ""
    if os.statvfs(there).f_flag & os.ST_RDONLY:
        return f"{there} is on a disk that is mounted read-only: mount it anew, or use another than {path}"
    user = _name(pwd.getpwuid, os.geteuid())
    return f"{user} cannot write to {there}: run install -d -o {user} {path}"


def lacking_room(needs: Sequence[Room]) -> str:
    """Return why directories on one disk cannot grow as much as their settings let them; "" if they can."""
    there = os.statvfs(_existing(needs[0].path))
    room, wanted = there.f_bavail * there.f_frsize, sum(need.size_bytes for need in needs)
    if wanted > room:  # what is there already may take long to count
        room += sum(_held_bytes(path) for path in {need.path for need in needs})
    if wanted <= room:
        return ""
    keys = " and ".join(dict.fromkeys(f"{need.key} of {need.path}" for need in needs))
    what = f"{keys}: {wanted / 1e6:,.0f} MB may be kept, and the disk has room for {room / 1e6:,.0f} MB"
    return f"{what}: when it is full, what comes is lost: keep less, or use another disk"


def disk_of(need: Room) -> int:
    """Return the number of the disk that a directory is on, or will be."""
    return os.stat(_existing(need.path)).st_dev


def _existing(path: str) -> Path:
    whole = Path(path).absolute()
    return next(parent for parent in (whole, *whole.parents) if os.path.exists(parent))


def _held_bytes(path: str) -> int:
    """Return the bytes of the files in a directory, of at most `_FILES_MAX`. One with two names, as in the
    spool of an upload, counts once."""
    found = dict[int, int]()
    files = (os.path.join(place, name) for place, _, names in os.walk(path) for name in names)
    for file in islice(files, _FILES_MAX):
        with suppress(OSError):  # files, and directories, come and go
            its = os.lstat(file)
            found[its.st_ino] = its.st_blocks * 512
    return sum(found.values())


def _sockets(need: Sockets) -> str:
    return "" if need.family in socket.AddressFamily.__members__ else f"this Python has no {need.family}"


def _probe(need: Probe) -> str:
    return str(load(need.function)(*need.arguments))


_LOOKS: dict[type[Any], Callable[[Any], str]] = {
    Library: _library,
    Device: _device,
    Listening: _listening,
    SocketFile: _socket_file,
    Lookup: _lookup,
    Readable: _readable,
    KeyFile: _key_file,
    PageToken: _page_token,
    Secret: _secret,
    Certificate: _certificate,
    Authorities: lambda need: unfit_pem(need.files),
    Lasting: _lasting,
    Directory: _directory,
    Room: lambda need: lacking_room([need]),
    Sockets: _sockets,
    Probe: _probe,
}

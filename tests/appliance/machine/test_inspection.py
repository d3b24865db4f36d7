"""What a machine lacks, on this machine: real ports, devices, sockets, names, certificates and interfaces."""

import os
import socket
import subprocess
from pathlib import Path

import pytest
import trustme

from appliance.machine.inspection import is_here, trouble
from bus.needs import (
    Certificate,
    Device,
    Directory,
    Library,
    Listening,
    Lookup,
    Need,
    PageToken,
    Probe,
    Readable,
    SocketFile,
    Sockets,
)
from tests.helpers.ports import free_port

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user")


def of_nobody(need: Need) -> str:
    """Return the trouble of the user nobody with a need. A child asks, which never gets its rights back."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        os.write(writes, trouble(need).encode())
        os._exit(0)
    os.close(writes)
    assert os.waitpid(child, 0)[1] == 0
    with open(reads) as answer:
        return answer.read()


def test_a_package() -> None:
    assert trouble(Library("yaml", "PyYAML", "can")) == ""
    text = trouble(Library("no_such_module", "no-such-package", "can"))
    assert text.startswith("it needs no-such-package: run ")
    assert "buscoupler[can]" in text


def test_a_device(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    name = os.ttyname(theirs)
    assert trouble(Device(name)) == ""
    os.close(ours)
    os.close(theirs)
    assert trouble(Device("/dev/no-such", "plug it in")).endswith(": plug it in")
    (tmp_path / "file").touch()
    assert "is no device" in trouble(Device(str(tmp_path / "file")))


@as_root
def test_a_device_of_others() -> None:
    ours, theirs = os.openpty()
    os.chmod(os.ttyname(theirs), 0o660)
    text = of_nobody(Device(os.ttyname(theirs)))
    assert "nobody may not read and write it: run usermod -aG " in text
    os.close(ours)
    os.close(theirs)


def test_a_port() -> None:
    with socket.create_server(("127.0.0.1", free_port())) as server:
        port = server.getsockname()[1]
        for host in ("127.0.0.1", "0.0.0.0", "*", "localhost"):
            text = trouble(Listening(host, port))
            assert f"on TCP port {port}: Address already in use by this process" in text
        assert trouble(Listening("127.0.0.2", port)) == ""
    assert trouble(Listening("127.0.0.1", port)) == ""
    assert "does not have that address" in trouble(Listening("192.0.2.1", port))


def test_a_udp_port() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", free_port()))
        port = taken.getsockname()[1]
        for host in ("127.0.0.1", "0.0.0.0"):
            text = trouble(Listening(host, port, udp=True))
            assert f"on UDP port {port}: Address already in use by this process" in text
        assert trouble(Listening("127.0.0.1", port)) == ""
    assert trouble(Listening("127.0.0.1", port, udp=True)) == ""
    assert "does not have that address" in trouble(Listening("192.0.2.1", port, udp=True))


@pytest.mark.parametrize("need", [Readable, PageToken])
def test_what_is_no_file_is_no_matter_of_permissions(need: type[Readable], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, kind in (
        (tmp_path, "a directory"),
        (tmp_path / "pipe", "a pipe"),
        (Path("/dev/null"), "a device"),
    ):
        text = f"{path}: it is no regular file, but {kind}: correct the path"
        assert trouble(need(str(path))) == text


@as_root
def test_a_port_for_root() -> None:
    start = int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())
    if start > 80:
        assert "CAP_NET_BIND_SERVICE" in of_nobody(Listening("127.0.0.1", 80))


def test_a_socket_file(socket_path: Path) -> None:
    path = str(socket_path)
    assert trouble(SocketFile(path)) == ""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        assert trouble(SocketFile(path)) == "", "nobody listens: a killed process left it"
        server.listen()
        assert f"{path} is in use by this process" in trouble(SocketFile(path))
    os.unlink(path)
    Path(path).touch()
    assert "is no socket" in trouble(SocketFile(path))


def test_a_name() -> None:
    assert trouble(Lookup("localhost")) == ""
    assert trouble(Lookup("nowhere.invalid", ipv4=True)).startswith(
        "nowhere.invalid cannot be looked up as IPv4"
    )


def test_files_of_certificates(tmp_path: Path) -> None:
    authority = trustme.CA()
    files = {name: str(tmp_path / f"{name}.pem") for name in ("cert", "key", "other")}
    own, other = authority.issue_cert("gw-a"), authority.issue_cert("gw-b")
    own.cert_chain_pems[0].write_to_path(files["cert"])
    own.private_key_pem.write_to_path(files["key"])
    other.private_key_pem.write_to_path(files["other"])
    assert trouble(Readable(files["cert"])) == trouble(Certificate(files["cert"], files["key"])) == ""
    assert "is not the key of" in trouble(Certificate(files["cert"], files["other"]))
    assert f"{files['cert']} holds no private key" in trouble(Certificate(files["cert"], files["cert"]))
    missing = str(tmp_path / "missing.pem")
    assert trouble(Readable(missing)).startswith(f"{missing}: No such file or directory: ")
    assert trouble(Certificate(missing, missing)) == "", "that it is missing is told once"


@as_root
def test_files_and_directories_of_others(tmp_path: Path) -> None:
    (tmp_path / "key.pem").touch(mode=0o600)
    assert "make it readable for nobody" in of_nobody(Readable(str(tmp_path / "key.pem")))
    wanted = tmp_path / "captures" / "here"
    assert f"install -d -o nobody {wanted}" in of_nobody(Directory(str(wanted)))


def test_a_directory(tmp_path: Path) -> None:
    assert trouble(Directory(str(tmp_path / "a" / "b"))) == ""
    (tmp_path / "file").touch()
    assert "is no directory" in trouble(Directory(str(tmp_path / "file" / "b")))


@as_root
def test_a_disk_that_is_mounted_read_only_is_told(tmp_path: Path) -> None:
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "tmpfs", str(place)], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        for wanted in (place, place / "captures"):
            assert "is mounted read-only: mount it anew" in trouble(Directory(str(wanted)))
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_interfaces() -> None:
    assert trouble(Probe("bridges.media.multicast.interfaces:trouble", ("lo", "239.1.1.1"))) == ""
    text = trouble(Probe("bridges.media.multicast.interfaces:trouble", ("nic9", "239.1.1.1")))
    assert text == "no interface nic9: run ip link to see those that there are"


def test_a_can_interface() -> None:
    text = trouble(Probe("bridges.media.can.interfaces:trouble", ("nic9",)))
    assert "run modprobe -a can can_raw" in text or "no interface nic9: run ip link" in text


def test_what_drivers_know() -> None:
    assert trouble(Probe("bridges.media.can.link:unknown", ("udp_multicast",))) == ""
    assert "use one of" in trouble(Probe("bridges.media.can.link:unknown", ("soketcan",)))
    text = trouble(Probe("bridges.media.uart.ports:trouble", ("hwgrep://no such device",)))
    assert text.startswith("no serial device matches no such device: plug it in; there are: ")


def test_addresses_of_this_machine() -> None:
    assert is_here("127.0.0.1")
    assert is_here("localhost")
    assert not is_here("192.0.2.1")
    assert not is_here("nowhere.invalid")


def test_a_family_of_sockets() -> None:
    assert trouble(Sockets("AF_CAN")) == ""
    assert trouble(Sockets("AF_NO_SUCH")) == "this Python has no AF_NO_SUCH"


def test_a_token_of_the_page_is_looked_at(tmp_path: Path) -> None:
    """A page with a bad token is not served, so `check --here` says so before."""
    path = tmp_path / "token"
    assert trouble(PageToken(str(path))).endswith(f"make one: (umask 077; openssl rand -hex 16 > {path})")
    path.write_text("short\n")
    assert "a token has 16 to 256 of A to Z, a to z, 0 to 9, - and _: make one" in trouble(
        PageToken(str(path))
    )
    path.write_text("0123456789abcdef\n")
    assert trouble(PageToken(str(path))) == ""

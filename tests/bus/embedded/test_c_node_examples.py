"""The manifests of the node in C, and its examples: each is built, and the one for Linux runs."""

import json
import shutil
import signal
import socket
import struct
import subprocess
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from bus.embedded.tokens import header
from bus.wire.frame import Frame, frame_bytes, pack, unpack
from bus.wire.pattern import token
from tests.bus.embedded.arduino import MISSING, sketch
from tests.bus.embedded.cnode_support import SOURCE, STRICT, compiler
from tests.helpers import ROOT
from tests.helpers.peers import wait

FOLDER = SOURCE.parent
EXAMPLES = FOLDER / "examples"
SKETCHES = sorted(path.stem for path in EXAMPLES.glob("*/*.ino"))
ZEPHYR = """
#pragma once
#include <stddef.h>
#include <stdint.h>
struct device;
struct k_msgq;
typedef struct { int64_t ticks; } k_timeout_t;
struct can_frame { uint32_t id; uint8_t dlc, flags; uint16_t timestamp; uint8_t data[64]; };
struct can_filter { uint32_t id, mask; uint8_t flags; };
enum { CAN_FRAME_IDE = 1, CAN_FILTER_IDE = 1 };
typedef void (*can_tx_callback_t)(const struct device *, int, void *);
extern const struct device *const zephyr_device;
#define DT_CHOSEN(name) name
#define DEVICE_DT_GET(node) NULL
#define CAN_MSGQ_DEFINE(name, size) extern struct k_msgq name
#define K_MSEC(ms) ((k_timeout_t){ms})
int can_send(const struct device *, const struct can_frame *, k_timeout_t, can_tx_callback_t, void *);
int can_start(const struct device *);
int can_add_rx_filter_msgq(const struct device *, struct k_msgq *, const struct can_filter *);
int k_msgq_get(struct k_msgq *, void *, k_timeout_t);
uint8_t can_dlc_to_bytes(uint8_t);
uint8_t can_bytes_to_dlc(uint8_t);
int64_t k_uptime_get(void);
uint32_t k_uptime_get_32(void);
void printk(const char *, ...);
"""
"""What the example needs of Zephyr, which Debian does not have, as its documentation declares it."""


def test_the_manifests_have_the_version_of_the_project() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert json.loads((FOLDER / "library.json").read_text())["version"] == version
    assert f"\nversion={version}\n" in (FOLDER / "library.properties").read_text()


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.c")), ids=lambda path: path.stem)
def test_tokens_in_examples_are_those_of_their_names(path: Path) -> None:
    names = ("greenhouse", "uptime", "show")
    for line in header(names).replace("TOKEN_", "").splitlines():
        assert line in path.read_text()


def test_the_example_for_zephyr_is_clean(tmp_path: Path) -> None:
    for name in ("device.h", "kernel.h", "drivers/can.h", "sys/printk.h"):
        made = tmp_path / "zephyr" / name
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text('#include "all.h"\n' if name != "device.h" else ZEPHYR)
    (tmp_path / "all.h").write_text(ZEPHYR)
    command = [compiler(), *STRICT, f"-I{tmp_path}", f"-I{FOLDER}", "-fsyntax-only"]
    subprocess.run([*command, str(EXAMPLES / "can_node" / "src" / "main.c")], check=True)


@pytest.mark.skipif(bool(MISSING), reason=f"needs the Debian packages {MISSING}: see `make test`")
@pytest.mark.parametrize("name", SKETCHES)
def test_a_sketch_is_built_for_an_arduino(name: str, tmp_path: Path) -> None:
    made = sketch(EXAMPLES / name / f"{name}.ino", tmp_path)
    sizes = subprocess.check_output(["avr-size", str(made)], text=True).splitlines()[1].split()
    assert int(sizes[0]) < 8192
    assert int(sizes[1]) + int(sizes[2]) < 600


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The example for Linux, built by CMake."""
    if shutil.which("cmake") is None:
        pytest.skip("Debian package cmake is missing")
    for command in (["cmake", "-S", str(FOLDER), "-B", str(tmp_path)], ["cmake", "--build", str(tmp_path)]):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return tmp_path / "linux_tcp"


@pytest.fixture
def gateway() -> Iterator[socket.socket]:
    """A listening socket, in the place of a gateway."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        yield listener


def test_a_program_on_linux_publishes_shows_and_dials_again(program: Path, gateway: socket.socket) -> None:
    port = str(gateway.getsockname()[1])
    with subprocess.Popen([program, "127.0.0.1", port], stdout=subprocess.PIPE) as node:
        try:
            with gateway.accept()[0] as peer:
                assert next(_frames(peer)).tokens == (token("greenhouse"), token("uptime"))
                peer.sendall(pack(1, [token("greenhouse"), token("show")], b"hello"))
                assert node.stdout is not None
                assert node.stdout.readline() == b"hello\n"
            with gateway.accept()[0] as peer:
                assert next(_frames(peer)).type == 1
        finally:
            node.kill()


def test_a_program_on_linux_shows_what_came_before_its_gateway_went(
    program: Path, gateway: socket.socket
) -> None:
    """Stopped, it finds at once what came and that the other end takes nothing any more."""
    port = str(gateway.getsockname()[1])
    with subprocess.Popen([program, "127.0.0.1", port], stdout=subprocess.PIPE) as node:
        try:
            with gateway.accept()[0] as peer:
                frames = _frames(peer)
                assert next(frames).type == 1
                node.send_signal(signal.SIGSTOP)
                stopped_s = int(time.time())
                said = b"".join(
                    pack(1, [token("greenhouse"), token("show")], b"%03d" % number) for number in range(500)
                )
                peer.sendall(said)
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            wait(lambda: int(time.time()) > stopped_s)  # it is to send first
            node.send_signal(signal.SIGCONT)
            assert node.stdout is not None
            assert [node.stdout.readline() for _ in range(500)] == [b"%03d\n" % one for one in range(500)]
        finally:
            node.kill()


def _frames(peer: socket.socket) -> Iterator[Frame]:
    data = b""
    while True:
        data += peer.recv(4096)
        size = frame_bytes(data)
        if 0 < size <= len(data):
            yield unpack(data[:size])
            data = data[size:]

"""The child of a fork: each class with threads of its own says what is wrong, and the process goes on."""

import subprocess
import sys

import pytest

PROGRAM = """
import gc, os, sys
from buscoupler import Bus, BusError, RawBus
from bus.tmq.classic import TMQ_BROKER, Context, Socket

def child(name, act):
    if not (pid := os.fork()):
        try:
            act()
            print(name, "passed", flush=True)
        except BusError as error:
            print(name, str(error).partition(":")[0], flush=True)
        sys.exit()  # finalizers and functions of atexit run
    status = os.waitpid(pid, 0)[1]
    if status:
        print(name, "ended with", status, flush=True)

def forget():
    global raw
    raw = None
    gc.collect()

def shows_close():
    bus.close()
    raw.close()
    tmq.close()
    context.close()

bus, raw = Bus(listen="tcp://127.0.0.1:0"), RawBus(dial=())
context = Context()
tmq = Socket(context, TMQ_BROKER)
for name, act in {
    "send": lambda: bus.send(("a",)), "send_bytes": lambda: bus.send_bytes(b"x"),
    "recv": bus.recv, "iterate": lambda: next(iter(bus)), "enter": bus.__enter__,
    "wait": lambda: bus.wait_peers(1), "raw send": lambda: raw.send(b"x"), "raw recv": raw.recv,
    "new": Bus, "new raw": RawBus, "bind": lambda: tmq.bind("127.0.0.1:0"),
    "tmq recv": lambda: tmq.recv(("a",), 9),
    "close": shows_close, "forget": forget, "exit": lambda: None,
}.items():
    child(name, act)
shows_close()
child("after close", Bus)
"""
REFUSED = "send", "send_bytes", "recv", "iterate", "enter", "wait", "raw send", "raw recv", "new", "new raw"


@pytest.mark.timeout(300)
def test_after_a_fork_each_class_says_so_and_closing_does_nothing() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=280,  # a guard: sixteen processes took over 30 s on a busy machine
    )
    bus, tmq = (
        f"this process was forked after a {name} was made, and has no threads for one"
        for name in ("Bus", "TMQ context")
    )
    words = REFUSED
    expected = [f"{word} {bus}" for word in words] + [f"{word} {tmq}" for word in ("bind", "tmq recv")]
    expected += [f"{word} passed" for word in ("close", "forget", "exit")] + [f"after close {bus}"]
    assert ran.stdout.splitlines() == expected
    assert (ran.returncode, ran.stderr) == (0, "")

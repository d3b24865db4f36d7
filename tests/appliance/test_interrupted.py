"""Every command of the table, interrupted twice at some point of its start or while it waits: no stack.

One process imports the program, and each command runs in a fork of it, so that this costs little. What the
interpreter itself shows before the first line of ours is not tried.
"""

import json
import subprocess
import sys
from pathlib import Path

from appliance.commandline import cli
from pipeline import jobs
from tests.helpers import ROOT

PROGRAM = """
import json, os, signal, sys
import appliance.commandline.cli
from buscoupler.__main__ import main

ENDS = 0, 1, 2, 130, -2, -14  # the last: the timer, after the end

def child(words, calls, output):
    # Run a command. Send SIGINT at the so-manieth call of a function, soon after again, and when it waits.
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.5, 0.1)
    os.dup2(output, 2)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    left = [calls, calls + 100]

    def count(frame, event, _):
        left[0] -= 1
        if left[0] == 0:
            left[:] = [left[1] - calls, 0]
            signal.raise_signal(signal.SIGINT)

    sys.argv = ["buscoupler", *words]
    sys.stdin = os.fdopen(os.pipe()[0])
    sys.setprofile(count)
    sys.exit(main())

def start(number, words):
    reading, writing = os.pipe()
    if not (pid := os.fork()):
        os.close(reading)
        child(words, (30, 300, 3000, 30_000, 10**9)[number % 5], writing)
    os.close(writing)
    return pid, reading, words

for pid, reading, words in [start(*one) for one in enumerate(json.load(sys.stdin))]:
    with os.fdopen(reading) as errors:
        text = errors.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if "Traceback" in text or "Exception ignored" in text or status not in ENDS:
        print(" ".join(words), "ended with", status, text[-2000:])
"""
WORDS = {
    "run": "{file}", "check": "-", "show": "{file}", "create": "{directory}/new.yaml",
    "explain": "a/b {file}",
    "demo": "--no-capture", "device": "{bus}", "broker": "tcp://127.0.0.1:0", "syndicate": "tcp://127.0.0.1:0",
    "catalog": "tcp://127.0.0.1:0 --records none", "service": "x --catalog tcp://127.0.0.1:9",
    "client": "x ping --catalog tcp://127.0.0.1:9", "query": "tcp://127.0.0.1:9 x", "values": "{bus}",
    "send": "{bus} a", "recv": "{bus}", "capture": "{bus} --directory {directory}/c", "traffic": "{bus}",
    "tokens": "--names -", "reload": "{file}", "diff": "{file} {file}", "completion": "bash",
    "key": "new {directory}/k", "journal": "{directory}",
}  # fmt: skip
HEAVY = {"pipeline", *jobs.NAMES}
"""Their engines are tried in tests/pipeline/engine/test_interrupts.py."""


def test_no_command_that_is_interrupted_shows_a_stack(tmp_path: Path, socket_path: Path) -> None:
    file = tmp_path / "t.yaml"
    bus = f"ipc://{socket_path}"
    file.write_text(
        f'name: t\ngateways: {{gw: {{address: 127.0.0.1}}}}\nbuses: {{b: {{on: gw, listen: "{bus}2"}}}}\n'
    )
    names = [name for name in cli.commands() if name not in HEAVY]
    commands = [
        [name, *WORDS.get(name, "").format(file=file, bus=bus, directory=tmp_path).split()] for name in names
    ]
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")

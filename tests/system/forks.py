"""Commands of a gateway in forks of one process that has imported them: a roll-out runs many.

As a module it serves at a socket, `python -m tests.system.forks SOCKET`. As a file it is `buscoupler`, by
that process: `python -I -S tests/system/forks.py SOCKET WORDS...` has it run the words with its own standard
streams, and ends with their status.
"""

import os
import signal
import socket
import sys
import traceback

_WORDS_BYTES = 65536


def ask(path: str, words: list[str]) -> int:
    """Have the process at a socket run a command, and return its status."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(path)
        socket.send_fds(asked, ["\0".join(words).encode()], [0, 1, 2])
        return int(asked.recv(16) or 1)


def serve(path: str) -> None:
    """Run what is asked for, each in a fork."""
    from appliance.commandline import cli  # noqa: F401 (forks need it, as all below)
    from appliance.commands import check, deploy, diff, run  # noqa: F401
    from appliance.rollout import station  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel takes those that have ended
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{path}.new")
        listener.listen(64)
        os.rename(f"{path}.new", path)  # who finds it may connect
        while True:
            asked, _ = listener.accept()
            if not os.fork():
                listener.close()
                _run(asked)
            asked.close()


def _run(asked: socket.socket) -> None:
    """Run a command as the process that asks for it, say with which status it ends, and end."""
    from buscoupler.__main__ import main

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    data, files, *_ = socket.recv_fds(asked, _WORDS_BYTES, 3)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", 1)  # noqa: SIM115
    status = 1
    try:
        status = main(data.decode().split("\0"))
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        asked.sendall(b"%d" % status)
        os._exit(0)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(ask(sys.argv[1], sys.argv[2:]))
    serve(sys.argv[1])

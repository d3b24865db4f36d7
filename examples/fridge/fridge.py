# ruff: noqa: F403, F405 (the star is what the example shows)
"""The fridge: it publishes a thermometer and a light. It needs only the address of the broker.

buscoupler broker tcp://0.0.0.0:9942
python fridge.py 127.0.0.1:9942
"""

import itertools
import json
import sys
import time
from contextlib import suppress

from bus.tmq import *

broker = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9942"
pause_s = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0


def read_temp(second):
    """Return degrees Celsius: the fridge warms up while the door is open."""
    return 4.0 + 2.0 * (second % 10 if read_light(second) else 0)


def read_light(second):
    """Return whether the light is on: the door is open for ten seconds, then shut for ten."""
    return second // 10 % 2 == 1


context = tmq_init()
socket = tmq_socket(context)
tmq_bind(socket, ("", 0))
tmq_broker(socket, broker)

tmq_publish(socket, ("fridge", "temp"))
tmq_publish(socket, ("fridge", "light"))

with suppress(KeyboardInterrupt):
    for second in itertools.count():
        tmq_send(socket, ("fridge", "temp"), json.dumps(read_temp(second)).encode())
        tmq_send(socket, ("fridge", "light"), json.dumps(read_light(second)).encode())
        time.sleep(pause_s)

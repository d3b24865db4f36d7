# ruff: noqa: F403, F405 (the star is what the example shows)
"""The speaker: it beeps while the fridge is open and warm. It subscribes to every frame of the fridge.

python alarm.py 127.0.0.1:9942
"""

import json
import sys
from contextlib import suppress

from bus.tmq import *

broker = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9942"

context = tmq_init()
socket = tmq_socket(context)
tmq_bind(socket, ("", 0))
tmq_broker(socket, broker)
tmq_subscribe(socket, ("fridge",))

sounding = False
with suppress(KeyboardInterrupt):
    while True:
        heard = tmq_recv_from(socket, ("fridge",), timeout=1.0)
        if heard is None or heard.pattern != pattern("fridge", "alert"):
            continue
        if json.loads(heard.data) != sounding:
            sounding = not sounding
            print("BEEP" if sounding else "silence", flush=True)

# ruff: noqa: F403, F405 (the star is what the example shows)
"""The web server: it follows the fridge, and publishes an alert if the door is left open.

python webserver.py 127.0.0.1:9942
"""

import json
import sys
import time
from contextlib import suppress

from bus.tmq import *

broker = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9942"

context = tmq_init()
socket = tmq_socket(context)
tmq_bind(socket, ("", 0))
tmq_broker(socket, broker)

tmq_subscribe(socket, ("fridge", "temp"))
tmq_subscribe(socket, ("fridge", "light"))
tmq_publish(socket, ("fridge", "alert"))

temp, light, alert = 3.0, False, None
with suppress(KeyboardInterrupt):
    while True:
        new_temp = tmq_recv(socket, ("fridge", "temp"))
        new_light = tmq_recv(socket, ("fridge", "light"))
        if new_temp is not None:
            temp = json.loads(new_temp)
            print("temperature", temp, flush=True)
        if new_light is not None:
            light = json.loads(new_light)

        new_alert = light and temp > 10
        if new_alert != alert:
            alert = new_alert
            print("alert", alert, flush=True)
        if new_temp is not None:
            tmq_send(socket, ("fridge", "alert"), json.dumps(alert).encode())
        if new_temp is None and new_light is None:
            time.sleep(0.01)

"""The demo: two buses, a serial line and a CAN bus joined into one, with real input and no hardware.

`play` is the course of the demo. The `scene` runs the gateway and its `members`, who send `readings` of this
machine; `nullmodem` is the serial line, `table` shows who heard what, and `picture` says what it means.
"""

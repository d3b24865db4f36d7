"""The machine that a gateway runs on: what is plugged into it, and what it lacks.

`plugged` finds serial ports, CAN interfaces and I2C buses. `inspection` looks whether one need of a link is
met, and `here` does so for all needs of a gateway's part of a topology (`check --here`). `turns` measures how
late a process has its turn.
"""

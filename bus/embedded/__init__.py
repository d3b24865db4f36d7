"""The node for microcontrollers, `buscoupler_node` (docs/microcontroller.md).

`buscoupler_tmq` makes it a client of TMQ brokers, and
`buscoupler_asking` asks for last values and the time. `load` puts it onto a board, made small by `shrink`.
`c/` holds a node in C for serial lines, CAN, streams and I2C; `tokens` writes the header of its names.
"""

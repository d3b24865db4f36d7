"""The node for microcontrollers, `buscoupler_node` (docs/microcontroller.md).

`buscoupler_tmq` makes it a client of TMQ brokers. `load` puts it onto a board, made small by `shrink`.
"""

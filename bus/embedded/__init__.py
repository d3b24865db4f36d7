"""The node for microcontrollers, `buscoupler_node` (docs/microcontroller.md).

`load` puts it onto a board, made small by `shrink`.
"""

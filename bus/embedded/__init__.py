"""The node for microcontrollers, and its loader (docs/microcontroller.md)."""

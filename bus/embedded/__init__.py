"""The node for microcontrollers, and loading it onto one (docs/microcontroller.md)."""

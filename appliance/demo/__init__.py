"""The demo: two buses, a serial line and a CAN bus joined into one, with real input and no hardware."""

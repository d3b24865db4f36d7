"""The demo: two buses, a serial line and a CAN bus made one, with real input and no hardware."""

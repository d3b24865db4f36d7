"""Takeovers under load: `rig` has the processes, and `relays` what is between them.

`stations` are the applications at both ends, `load` accounts for each frame, and `trial` causes the `faults`.
"""

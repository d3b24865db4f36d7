"""An I2C bus as a link: this machine its controller, a mailbox in each target (docs/wire/i2c.md).

`medium` is the record. A `link` opens an `adapter` and makes a `pipe`; `run` drives the `poll` of targets
in a thread or on the loop, `alert` is the line that targets pull. `mailbox_controller` and
`mailbox_target` are both ends without I/O, on `mailbox_segments`. `memory` is an adapter for tests.
"""

"""An I2C bus as a link: this machine is the controller, and each target has a mailbox (docs/wire/i2c.md).

`medium` is the record. A `link` opens an `adapter` and makes a `pipe`. `run` calls the poller of `poll` in a
thread or on the loop. `alert` is the line that targets pull low. `mailbox_controller` and `mailbox_target`
are the two ends of a mailbox, without I/O; both use `mailbox_segments`. `memory` is an adapter for tests.
`spoken` is a link whose chips have registers, and a protocol asks for them.
"""

"""An I2C bus as a link: this machine its controller, a mailbox in each target (docs/wire/i2c.md)."""

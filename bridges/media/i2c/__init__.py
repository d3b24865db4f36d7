"""An I2C bus as a link: this machine its controller, a mailbox in each target (docs/wire/i2c.md)."""

from bridges.media.i2c.link import I2cLink

__all__ = ["I2cLink"]

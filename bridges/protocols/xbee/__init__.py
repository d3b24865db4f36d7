"""XBee modules in API mode: `protocol` has the record, `api` the frames on the serial line, `packets` what is
in them, `pending` the packets whose status is awaited, and `translator` joins them."""

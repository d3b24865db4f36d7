"""MAVLink for buscoupler: `protocol` has the record, `translator` turns messages into frames and back."""

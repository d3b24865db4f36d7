"""SLIP (RFC 1055): `protocol` has the record, `translator` cuts packets at END and writes them."""

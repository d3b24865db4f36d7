"""CAN frames over UDP or TCP as cannelloni has them: `protocol` has the record, `packet` the bytes,
`translator` the rest.
"""

"""Modbus: a gateway asks the devices of a line, or at a TCP address, for registers, and writes them.

`protocol` has the records, `plan` joins registers into requests. `pdu` makes requests and judges answers;
`rtu` and `mbap` are the two framings, with all that can go wrong between request and answer. `translator`
asks by time and backs off from silent devices. By the Modbus application protocol V1.1b3 and the serial line
guide V1.02.
"""

"""SAE J1939: `pgn` has identifiers and what is no value, `transport` joins long messages that others send,
`fast` those of NMEA 2000, both as `sessions`, `joining` those of a wire, and `claim` claims an address
before something is sent."""

"""SAE J1939: `pgn` has identifiers and what is no value, `transport` joins long messages that others send,
and `claim` claims an address before something is sent."""

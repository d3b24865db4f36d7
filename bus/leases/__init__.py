"""Which gateway may run a bridge: the words, a candidate's side, and the broker's table."""

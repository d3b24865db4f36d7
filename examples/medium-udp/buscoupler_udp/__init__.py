"""UDP unicast as a medium of buscoupler."""

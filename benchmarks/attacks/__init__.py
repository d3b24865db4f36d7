"""Attacks beside an honest pair: what the pair notices.

`kinds` lists the attacks, each with its topology; `attackers` are the processes of strangers, `pairs` those
of the honest, `peers` is what both say, and `__main__` lets them meet at a gateway.
"""

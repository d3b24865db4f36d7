"""The raw bus, and what programs and gateways say on it.

`wire` has the formats; `hub` is the bus itself: pipes and links; `ledger` has their counts, `balance` checks
them; `transports` makes its links, `client` is the application's socket. `watched` is a hub that cuts loops:
`loops` names a suspect, `trials` examines it (`cases` and `held` at the hub), `canaries` prove, and `rings`
says what is cut; `patch` joins two hubs of a process. `serving` listens for foreign clients, within bounds: `tmq`, which has clients and brokers, stands on it. `leases` chooses which gateway
forwards, `embedded` is for microcontrollers. `schema` and `kinds` describe records that a file configures,
`urls` takes addresses apart, `needs` are those of links, `names` shows tokens by name, `keys` are what
gateways sign with, `extras` says what to install, `text` makes foreign text fit for a terminal and finds the
word that was meant. `reasons` says why a ledger counts a message as dropped, and who intended it. `errors`
and `backoff` are shared by all, `wake_hook` notices when a process stood still, `permissions` are those of
files. `events` and `logs` are what gateways say about themselves, and `report` is what a service does.
`values` has the newest frame of each pattern, and `asking` is the question for it.
"""

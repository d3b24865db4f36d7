"""The raw bus, and what programs and gateways say on it.

`wire` has the formats; `hub` is the bus itself: pipes and links; `ledger` has the counts of a pipe,
`accounts` those of all links, with what each misses without a pipe (`vacancy`), and `balance` checks them;
`transports` makes its links, `client` is the application's socket. `watch` finds loops and cuts them; `patch`
joins two hubs of a process. `serving` listens for foreign clients, within bounds: `tmq`, which has clients
and brokers, stands on it. `leases` chooses which gateway forwards, `journal` keeps messages on disk,
`embedded` is for microcontrollers. `machine` has files, threads, addresses and their holders. `schema` and
`kinds` describe records that a file configures, `key_types` the values in them, `urls` takes addresses apart,
`needs` are those of links, `confined` says which wires end here, `names` shows tokens by name, `keys` are
what gateways sign with, `extras` says what to install, `advice` what to do about an error, `defects` what is
wrong in foreign code, `text` makes foreign text fit for a terminal and finds the word that was meant,
`elsewhere` knows names of other systems. `reasons` says why a ledger counts a message as dropped, and who
intended it. `errors`, `backoff` and `allowance` are shared by all, as is long work in `steps`. `events`,
`logs` and `announcements` are what gateways say about themselves, passed on in `turns`, with JSON that
`fitting` makes fit, and `report` is what a service does. `values` has the newest frame of each pattern, and
`asking` is the question for it. `input` watches what comes in by a link, and `noise` judges it. `lateness` is
the age of what waited in a journal, `replaying` whether it is sent again; both are known while it is passed
on (`passing`). `quantity` has the values of devices: types, scales, units, forms. `renaming` has the patterns
that frames have on a wire and inside a bridge.
"""

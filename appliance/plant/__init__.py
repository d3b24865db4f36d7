"""The whole plant, as one gateway sees it: gateways announce themselves to each other, or are asked.

`note` is what a gateway says of itself, `announcement` as much of it as goes over trunks and brokers, and
`saying` sends that. `hearing` has what others announced; `places` says where the rest is asked, and `asking`
asks them. `verdict` compares what they say, and `files` the files that they run. `watch` does it every few
seconds, beside the event loop, and `presence` is what this gateway says of itself to it.
"""

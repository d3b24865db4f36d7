"""The whole plant, as one gateway sees it: each gateway asks the others for a note about themselves.

`note` is what a gateway says of itself, `places` says where the others are asked, `asking` asks them, and
`verdict` compares what they say. `watch` does it every few seconds, beside the event loop.
"""

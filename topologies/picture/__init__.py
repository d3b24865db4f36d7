"""Pictures of a topology: `show` as text and Mermaid, `drawing` as boxes and lines with stable ids.

`layout` gives a drawing places, `labels` those of the words beside lines, `marks` are what is live in it, and
`svg` is its text.
"""

"""Pictures of a topology: `show` as text and Mermaid, `drawing` as boxes and lines with stable ids.

`layout` gives a drawing places, `labels` those of the words beside lines, and `svg` is its text.
"""

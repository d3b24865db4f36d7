"""Text that is generated from the model: `reference` is the page of all keys, `schema` the JSON Schema for
editors, and `files` the text of new topologies.
"""

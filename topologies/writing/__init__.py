"""Text that is generated from the model: `reference` is the page of all keys, `schema` the JSON Schema for
editors, `files` the text of new topologies, and `subjects` gives out Cyphal subjects.
"""

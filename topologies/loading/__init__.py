"""Reading of topology files: text in, a checked record of the model or findings out.

`document` parses the YAML text into nodes with places, `variables` replaces those in values, and `loader`
makes the model from the nodes: `mappings` tells whether a mapping has values by gateway, and of which kind
a record is, `numbers` whether a number is the one that is meant.
"""

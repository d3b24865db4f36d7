"""Reading of topology files: text in, a checked record of the model or findings out.

`loader` reads a file. `document` parses its YAML text into nodes with places, `variables` replaces those
in values, and `reader` makes the model from the nodes: `mappings` tells whether a mapping has values by
gateway, and of which kind a record is, `meant` what an unknown key may be, `levels` where it belongs,
`brackets` that names are a pattern, `scalars` what a scalar is, and `numbers` whether a number is the
one that is meant. `references` are names of what stands elsewhere in the file.
"""

from bus.machine.late import import_yaml

import_yaml()  # before a module of this package imports it

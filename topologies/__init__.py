"""The YAML model of a whole system: `load` reads it, `check` judges it, `show` draws it.

`document` is the text as nodes with places, `loader` makes the `model` of it, `findings` are what is
wrong. The `checker` asks `cycles`, `exclusive`, `budgets` and `filters`; `segments` knows who meets whom,
`seats` what each side of a bridge joins there. `reference` writes the page of all keys.
"""

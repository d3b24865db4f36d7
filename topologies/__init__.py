"""The YAML model of a whole system: `load` reads it, `check` judges it, `show` draws it."""

"""Lines of text: `protocol` has the record, `translator` cuts lines and writes them.

`places` has patterns and templates with places for groups and tokens, `matching` the expressions (RE2).
"""

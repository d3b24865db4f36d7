"""VE.Direct of Victron, the text protocol: `protocol` has the record, `labels` what the fields are, `text`
the format of blocks and of HEX frames between them, `translator` gives out values.
"""

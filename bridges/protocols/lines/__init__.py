"""Lines of text: `protocol` has the record, `translator` cuts lines and writes them."""

"""Lines of JSON: `protocol` has the record, `reading` reads a line within bounds, `translator` uses it."""

"""A link to any bus that speaks SP, by its URL: `medium` is the record."""

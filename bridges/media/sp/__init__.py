"""A link to any bus that speaks SP, by its address."""

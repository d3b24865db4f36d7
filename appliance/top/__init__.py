"""`top` as a program on a terminal: `screen` is what it shows, and `keys` what is pressed."""

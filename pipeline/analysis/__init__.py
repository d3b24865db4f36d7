"""The analysis of captures: DataFrames in and out, the rules they share, and explanations in plain Python."""

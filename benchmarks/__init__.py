"""Comparisons with other systems on the same loads, and measurements of our own parts."""

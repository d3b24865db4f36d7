"""Bridges: translate TMQ frames between media, with policies, and stand in for each other."""

"""Bridges that change each frame, beside those of other libraries: `systems` and `report`.

The loads are `load.c` and `zenoh_load`; `foreign` runs the bridges of others.
"""

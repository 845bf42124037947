"""Loops over whole blocks, as plain functions, which `compile` runs as Python or compiled."""

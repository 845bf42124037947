"""Loops over whole blocks, as plain functions that are compiled at their first call."""

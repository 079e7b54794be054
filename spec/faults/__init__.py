"""Planted faults: wrong engines, each of which the suite must notice."""

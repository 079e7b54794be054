"""Mutation testing: the source is changed at random places, and the suite must notice. ``python -m mutation``."""

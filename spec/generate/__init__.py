"""Hypothesis strategies, constructive throughout: nothing is drawn and then thrown away."""

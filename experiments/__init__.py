"""Trainings of real models, each beside its PyTorch twin: ``python -m experiments.digits``."""

"""Trainings of real models, each beside its PyTorch twin: ``python -m experiments.digits``."""


def missing(error: ImportError) -> str:
    """What is not installed, and how to get it."""
    return f'the experiments need {error.name}, which is not installed: pip install -e ".[test,experiments]"'

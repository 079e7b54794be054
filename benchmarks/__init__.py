"""smolgrad beside NumPy by hand and beside its peers, interleaved in one run: ``python -m benchmarks``."""

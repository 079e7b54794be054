"""Who is right: exact arithmetic, finite differences with an error bar, PyTorch, the scalar engine."""

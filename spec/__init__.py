"""The executable specification: what is true of every op, and how we look for a counterexample."""

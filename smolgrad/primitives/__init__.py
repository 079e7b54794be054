"""The primitive ops: forward and pullback of each, one file a family."""

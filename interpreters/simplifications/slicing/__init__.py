"""Slice pushdown: slices are moved to the operands of the equations whose results they read."""

"""Reading parts of arrays: slices moved to the operands of what they read."""

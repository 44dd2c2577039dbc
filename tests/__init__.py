"""The tests; their paths mirror those of the source."""

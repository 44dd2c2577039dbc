"""Opaque functions have no index row: which elements of their arguments they read is unknown."""

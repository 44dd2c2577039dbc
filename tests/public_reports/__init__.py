"""Situations of public bug reports of other systems, as programs of our own: one table per subject."""

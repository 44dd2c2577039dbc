"""Masks: where linear values matter, and choices moved to where they protect products."""

"""Mask sinking: find where linear values are read, and move selects to the coefficients of products."""

"""Special functions that are written with loops or with derivatives of their own: names of `scipy.special`."""

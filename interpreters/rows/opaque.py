"""Functions that are not known have no index row: what they read of their arguments is not known, either."""

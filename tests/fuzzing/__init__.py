"""Random programs, and the oracle that they are compared with."""

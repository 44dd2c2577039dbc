"""Lowering: print programs as StableHLO, compile them and run them. The only importer of jaxlib."""

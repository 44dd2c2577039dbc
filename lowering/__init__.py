"""RUN: print StableHLO, compile it and call it. The only importer of jaxlib."""

"""Interpreters: transform programs by rule (differentiate, batch, transpose, simplify). Never imports jaxlib."""

"""TRANSFORM: differentiate programs by rule. Never imports jaxlib."""

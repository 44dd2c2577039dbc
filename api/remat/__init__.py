"""Rematerialization: checkpoint, and the residuals that reverse mode saves."""

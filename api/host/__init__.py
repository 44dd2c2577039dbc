"""The host from compiled programs: callbacks and debugging."""

"""Libraries for JAX, unedited, with Tapeless in its place."""

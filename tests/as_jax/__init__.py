"""What holds inside of `as_jax` and beside JAX, as facts that a process of its own looks at: see facts.py."""

"""Compilation: jit, make_jaxpr, the stages of compiling, placement on devices."""

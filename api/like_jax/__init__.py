"""Names of JAX without a meaning of their own here, for programs and libraries that were written for it.

Begin with `shim`: `tl.as_jax()`, inside of which `import jax` means Tapeless. `jax_src` has modules of `jax._src`,
`example_layers` and `example_optimizers` what `jax.example_libraries` has, the others what `tapeless.extend` offers by
JAX's names. Only the front door and `tapeless.extend` import anything of it.
"""

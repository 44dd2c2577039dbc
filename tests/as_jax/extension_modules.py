"""jaxlib's extension modules are not loaded twice, which they cannot be: LAPACK's would end the process."""

from collections.abc import Iterator
from importlib import import_module

import jax.numpy as theirs

from tests.as_jax.facts import Fact


def facts() -> Iterator[Fact]:
    theirs.linalg.eigh(theirs.eye(2))
    with import_module("tapeless").as_jax():
        jnp = import_module("jax.numpy")
        yield "eigh inside", jnp.linalg.eigh(jnp.eye(2)).eigenvalues.shape, (2,)
    yield "cholesky afterwards", theirs.linalg.cholesky(theirs.eye(2)).shape, (2, 2)

"""The same programs under JAX: its values and cotangents, as one more reference. Imported only where JAX is wanted."""

from types import SimpleNamespace
from typing import Any

import jax
import jax.ad_checkpoint
import jax.custom_batching
import jax.numpy as jnp
import numpy as np

from tests.fuzzing.modes import Arrays, Case

jax.config.update("jax_enable_x64", True)


def without_checkpoints(loop: Any) -> Any:
    """Drop the arguments that say how reverse mode keeps states, which JAX does not have."""
    return lambda *args, checkpoint=None, checkpoints=None, **options: loop(*args, **options)


LOOPS = {name: without_checkpoints(getattr(jax.lax, name)) for name in ("scan", "fori_loop", "while_loop", "map")}
LAX = SimpleNamespace(**{**vars(jax.lax), **LOOPS})
NAMES = {"tl": jax, "tnp": jnp, "lax": LAX, "np": np}


def reference(case: Case, quantity: str) -> Arrays | None:
    """What JAX computes; None if it is not asked for this quantity. Raises what JAX raises."""
    f = case.program.function(NAMES)
    smooth = [v.kind in "fc" for v in case.program.results]
    args, xs, cts = ([np.asarray(x) for x in each] for each in (case.args, case.xs, case.cts))

    def g(xs: Any) -> Any:
        full: list[Any] = [jnp.asarray(x) for x in args]
        for i, x in zip(case.smooth, xs):
            full[i] = x
        return [y for y, yes in zip(f(*full), smooth) if yes]

    if quantity == "values":
        return [np.asarray(y) for y in jax.jit(f)(*args)]
    if quantity == "cotangents" and not case.program.forward_only:
        return [np.asarray(y) for y in jax.jit(lambda xs, cts: jax.vjp(g, xs)[1](cts)[0])(xs, cts)]
    return None

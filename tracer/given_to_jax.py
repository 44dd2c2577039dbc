"""The error for arrays of ours that a program gives to JAX itself, or to a library that was imported with it."""

from types import FrameType
from typing import Final

GIVEN_TO_JAX: Final = (
    "an array of Tapeless was given to JAX, or to a library that was imported with it, such as optax.\n"
    "  Import and call libraries for JAX inside of `with tl.as_jax():`, where they compute by Tapeless; or hand over "
    "numpy.asarray(x)."
)


def is_asked_by_jax(frame: FrameType) -> bool:
    """Tell whether a frame is of JAX's own code, not of that which `as_jax` puts into its place.

    Left out is what makes arrays, as `jax.numpy.asarray` does: it takes NumPy's protocols, too.
    """
    name = str(frame.f_globals.get("__name__", ""))
    return name.startswith("jax.") and not name.endswith(".array_constructors")

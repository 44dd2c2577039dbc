"""Windows at places that are known are slices; one that covers an array replaces it."""

from typing import Any

from tapeless.interpreters import simplify
from tapeless.interpreters.simplifications.slicing.views import known_window
from tapeless.interpreters.simplify import Writer
from tapeless.tracer.jaxpr import Atom
from tapeless.tracer.primitives import indexing as i
from tapeless.tracer.primitives.shape import slice_p


def _dynamic_slice(w: Writer, x: Atom, *starts: Atom, slice_sizes: tuple[int, ...]) -> Any:
    first = known_window(starts, x.aval.shape, slice_sizes)
    if first is None:
        return None
    limits = tuple([a + n for a, n in zip(first, slice_sizes)])
    return w.write(slice_p, x, start_indices=first, limit_indices=limits, strides=(1,) * len(first))


def _dynamic_update_slice(w: Writer, x: Atom, update: Atom, *starts: Atom) -> Any:
    return update if update.aval is x.aval else None


simplify.rules[i.dynamic_slice_p] = _dynamic_slice
simplify.rules[i.dynamic_update_slice_p] = _dynamic_update_slice

"""Lowering of platform_index: a constant, as the platform is known here."""

from typing import Any

from tapeless.lowering import emit
from tapeless.lowering.hlo import Function
from tapeless.tracer.primitives.platform import Platforms, platform_index_p

_NAMES = {"gpu": "cuda"}  # the only kind of GPU there is a plugin of


def _platform_index(f: Function, outs: Any, *, platforms: Platforms) -> Any:
    name = _NAMES.get(f.platform, f.platform)
    for i, group in enumerate(platforms):
        if group is None or name in group:
            return (f.constant(i, outs[0]),)
    known = ", ".join(p for group in platforms for p in group or ())
    raise NotImplementedError(
        f"platform_dependent: there is no function for {name}, only for {known}.\n  Add {name}=, or default=."
    )


emit.rules[platform_index_p] = _platform_index

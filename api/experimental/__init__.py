"""The namespace of `jax.experimental`, by the same names; its modules are imported when they are first used."""

import typing as _typing

from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["checkify", "io_callback", "jet", "ode"]

if _typing.TYPE_CHECKING:
    from tapeless.experimental import checkify, jet, ode
    from tapeless.host.callbacks import io_callback
else:
    _complete_namespace(globals(), {"": "checkify jet ode", "host.callbacks": "io_callback"})

"""The namespace of `jax.experimental`, by the same names; its modules are imported when they are first used."""

import typing as _typing

from tapeless.host.callbacks import io_callback
from tapeless.late_names import imported_late as _imported_late

__all__ = ["checkify", "io_callback", "jet", "ode"]

if _typing.TYPE_CHECKING:
    from tapeless.experimental import checkify, jet, ode
else:
    __getattr__ = _imported_late(globals(), {"checkify": "", "jet": "", "ode": ""})

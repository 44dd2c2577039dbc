"""Looking at values while compiled programs run: `debug.print`, `debug.log`, `debug.callback`, `debug.breakpoint`."""

import typing as _typing

from tapeless.host.debug_callbacks import debug_callback as callback
from tapeless.host.debug_callbacks import debug_log as log
from tapeless.host.debug_callbacks import debug_print as print
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

__all__ = ["breakpoint", "callback", "log", "print"]

if _typing.TYPE_CHECKING:
    from tapeless.host.debugger import breakpoint
else:
    _complete_namespace(globals(), {"host.debugger": "breakpoint"})

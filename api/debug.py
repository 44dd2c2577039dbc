"""Looking at values while compiled programs run: `debug.print`, `debug.callback`."""

from tapeless.host.debug_callbacks import debug_callback as callback
from tapeless.host.debug_callbacks import debug_print as print

__all__ = ["callback", "print"]

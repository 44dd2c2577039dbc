"""Looking at values while compiled programs run: `debug.print`, `debug.callback`."""

from tapeless.debugging import debug_callback as callback
from tapeless.debugging import debug_print as print

__all__ = ["callback", "print"]

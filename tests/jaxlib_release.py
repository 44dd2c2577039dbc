"""jaxlib's release, for expectations of what XLA does."""

from tapeless.lowering.xla_workarounds.compat import jaxlib_version

RELEASE = tuple(int(part) for part in jaxlib_version().split(".")[:3])

"""What SciPy has, under the names of `jax.scipy`: `special` and `stats`."""

import sys as _sys

from tapeless import scipy_special as special
from tapeless import scipy_stats as stats

_sys.modules[f"{__name__}.special"] = special  # as os.path is a module: no package is needed to import it by name
_sys.modules[f"{__name__}.stats"] = stats
_sys.modules[f"{__name__}.stats.norm"] = stats.norm

__all__ = ["special", "stats"]

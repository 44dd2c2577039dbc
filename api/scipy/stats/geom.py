"""Names of `scipy.stats.geom`. See `tapeless.tracer.distributions.geom`."""

from tapeless.tracer.distributions.geom import logpmf, pmf

__all__ = ["logpmf", "pmf"]

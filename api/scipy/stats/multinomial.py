"""Names of `scipy.stats.multinomial`. See `tapeless.tracer.distributions.multinomial`."""

from tapeless.tracer.distributions.multinomial import logpmf, pmf

__all__ = ["logpmf", "pmf"]

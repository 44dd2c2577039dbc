"""Rules of primitives for jvp, transpose, vmap and partial evaluation, by family. Importing this fills the tables."""

from tapeless.tracer.rules import fill

fill(__name__)

"""Tables for primitives of libraries, by which programs with them are simplified and counted."""

from tapeless.custom.primitive_analysis import def_cost, def_elementwise

__all__ = ["def_cost", "def_elementwise"]

"""What programs with a primitive of a library are simplified and counted by."""

from tapeless.custom.primitive_analysis import def_cost, def_elementwise

__all__ = ["def_cost", "def_elementwise"]

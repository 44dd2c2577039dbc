"""Index rows and costs of primitives that a library defines."""

from tapeless.custom.primitive_analysis import def_cost, def_elementwise

__all__ = ["def_cost", "def_elementwise"]

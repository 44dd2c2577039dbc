"""Numbers that state a dtype: the names of `jax._src.literals`, by which libraries recognize them. We make none."""


class TypedInt(int):
    """An integer of a dtype."""


class TypedFloat(float):
    """A floating-point number of a dtype."""


class TypedComplex(complex):
    """A complex number of a dtype."""


__all__ = ["TypedComplex", "TypedFloat", "TypedInt"]

"""Element types beyond NumPy's: the dtypes of keys of random numbers, `key<fry>` and one for each other generator.

An array of keys is an array like any other as far as its shape goes, but an element is no number: it stands in memory
as two or four words of 32 bits, along one more axis, the last. Only `types.physical` shows that. Operations that move
elements take keys; operations on numbers refuse them. The names are those of JAX's extended dtypes.
"""

from typing import Any, final

import numpy as np

DType = np.dtype[Any]


class extended(np.generic):
    """Category of the dtypes that NumPy does not have and that have no arithmetic."""


class prng_key(extended):
    """Category of the dtypes of keys: `issubdtype(x.dtype, prng_key)` asks whether `x` holds keys."""


class ExtendedDType:
    """Base of dtypes that libraries define, as flax does for scales of float8. No array is of such a dtype here."""


@final
class KeyDType:
    """The dtype of keys for one generator; `KEYS` holds the only instances.

    impl: the generator's name; tag: its abbreviation; words: how many of 32 bits a key takes.
    """

    __slots__ = ("impl", "itemsize", "name", "tag", "words")

    kind = "k"
    type = prng_key

    def __init__(self, impl: str, tag: str, words: int) -> None:
        self.impl: str = impl
        self.tag: str = tag
        self.words: int = words
        self.name: str = f"key<{tag}>"
        self.itemsize: int = 4 * words

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return dtype_for, (self.impl,)


_GENERATORS = (("threefry2x32", "fry", 2), ("rbg", "rbg", 4), ("unsafe_rbg", "urbg", 4))
KEYS: dict[str, Any] = {row[0]: KeyDType(*row) for row in _GENERATORS}  # they stand wherever dtypes of NumPy's do
KEY: np.dtype[Any] = KEYS["threefry2x32"]


def dtype_for(impl: str) -> np.dtype[Any]:
    """Return the dtype of keys for the generator called `impl`."""
    return KEYS[impl]

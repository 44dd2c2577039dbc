"""Element types beyond NumPy's: the dtype of keys of random numbers, `key<fry>`.

An array of keys is an array like any other as far as its shape goes, but an element is no number: it stands in memory
as two words of 32 bits, along one more axis, the last. Only `types.physical` says so. What moves elements takes keys;
what computes with numbers refuses them. The names are those of JAX's extended dtypes.
"""

from typing import Any, final

import numpy as np

DType = np.dtype[Any]
WORDS = 2  # of 32 bits that a key of threefry2x32 takes


class extended(np.generic):
    """Category of the dtypes that NumPy does not have and that have no arithmetic."""


class prng_key(extended):
    """Category of the dtypes of keys: `issubdtype(x.dtype, prng_key)` asks whether `x` holds keys."""


class ExtendedDType:
    """Base of dtypes that libraries define, as flax does for scales of float8. No array is of such a dtype here."""


@final
class KeyDType:
    """The dtype of keys for threefry2x32. `KEY` is the only instance."""

    __slots__ = ()

    name = "key<fry>"
    kind = "k"
    type = prng_key
    itemsize = 4 * WORDS

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str:
        return "KEY"


KEY: np.dtype[Any] = KeyDType()  # pyright: ignore[reportAssignmentType]  # it stands wherever a dtype of NumPy's does

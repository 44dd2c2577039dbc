"""Linear maps without matrices, under the names of `scipy.sparse`: `tapeless.scipy.sparse`."""

from tapeless.scipy.sparse import linalg

__all__ = ["linalg"]

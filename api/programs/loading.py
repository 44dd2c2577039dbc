"""`load`: a tree of arrays, or the object that it is the tree of, from a file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tapeless.saving import trees
from tapeless.saving.safetensors_layout import refuse
from tapeless.tracer.late_imports import LateModule

if TYPE_CHECKING:
    from tapeless.programs import gradient_programs
else:
    gradient_programs = LateModule("tapeless.programs.gradient_programs")

GRADIENT_PROGRAM = "gradient program"


def load(path: str | os.PathLike[str], like: Any = None, *, mmap: bool = False) -> Any:
    """Read a tree of arrays from a file that `save` wrote, without running any code from the file.

    A file that a `gradient_program` was saved to becomes one again: its programs are checked as they are read.

    Args:
      path: of the file.
      like: a tree of the structure that was saved, with arrays or `tl.ShapeDtypeStruct`s of the same shapes and dtypes.
        Named tuples and registered classes come back by it alone; what of them is no leaf is that of `like`.
      mmap: give NumPy arrays that are views of the file, and are read when they are used, instead of arrays on the
        device; they are not compared with their checksums. Keys, and types of less than a byte, are read at once; so
        are booleans, which are checked.
    Returns: the tree: arrays on the current device, Python's numbers and containers as they were.
    Raises: ValueError, naming the file and the reason, if it is not a whole file that `save` wrote, if a class is in it
      and no `like` is given, or if `like` differs, with the path; TypeError if a leaf of `like` has no shape and dtype;
      NotImplementedError on a big-endian machine; OSError if the file cannot be read.

    >>> import tempfile, pathlib, tapeless as tl, tapeless.numpy as tnp
    >>> path = pathlib.Path(tempfile.mkdtemp(), "model.safetensors")
    >>> tl.save(path, [tnp.arange(3), 0.5])
    >>> tl.load(path)
    [Array([0, 1, 2], dtype=int32), 0.5]
    """
    where = Path(path)
    found = trees.load_tree(where, like, mmap=mmap)
    if found.kind is None or like is not None:
        return found.tree
    if found.kind != GRADIENT_PROGRAM:
        refuse(where, f"it holds a {found.kind}, of another version of tapeless")
    return gradient_programs.of_tree(where, found.tree)

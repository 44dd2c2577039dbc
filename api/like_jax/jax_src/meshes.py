"""Meshes of devices, of which there is none: what libraries ask for before they shard an array."""

from enum import Enum
from typing import Final

__all__ = ["AxisType", "get_abstract_mesh", "get_mesh"]


class AxisType(Enum):
    """Choices of what splits arrays along an axis of a mesh: the compiler, their types, or the program."""

    Auto = "auto"
    Explicit = "explicit"
    Manual = "manual"


class EmptyMesh:
    """The mesh that is set where none is: it has no axes and no devices."""

    empty: Final = True
    axis_names: Final[tuple[str, ...]] = ()
    axis_types: Final[tuple[AxisType, ...]] = ()
    axis_sizes: Final[tuple[int, ...]] = ()
    size: Final = 0

    @property
    def shape(self) -> dict[str, int]:
        """Sizes of the axes by name: none."""
        return {}


_EMPTY: Final = EmptyMesh()


def get_abstract_mesh() -> EmptyMesh:
    """Return the mesh that is set for programs: always the empty one."""
    return _EMPTY


def get_mesh() -> EmptyMesh:
    """Return the mesh of devices that is set: always the empty one."""
    return _EMPTY

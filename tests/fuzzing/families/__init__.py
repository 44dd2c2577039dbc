"""Families of statements: functions that append one statement or a few to a body, by name."""

from collections.abc import Callable

from tests.fuzzing.builder import Builder
from tests.fuzzing.families import contractions, elementwise, indexing, loops, reductions, shaping, writes

TABLE: dict[str, Callable[[Builder], None]] = {
    **elementwise.FAMILIES,
    **shaping.FAMILIES,
    **reductions.FAMILIES,
    **contractions.FAMILIES,
    **indexing.FAMILIES,
    **writes.FAMILIES,
    **loops.FAMILIES,
}

"""Families of statements: functions that append one statement or a few to a body, by name."""

from collections.abc import Callable

from tests.fuzzing.builder import Builder
from tests.fuzzing.families import (
    contractions,
    counting,
    elementwise,
    fourier,
    gathers,
    indexing,
    linalg,
    loops,
    reductions,
    rules,
    shaping,
    specials,
    writes,
)

MODULES: dict[str, dict[str, Callable[[Builder], None]]] = {
    "contractions": contractions.FAMILIES,
    "counting": counting.FAMILIES,
    "elementwise": elementwise.FAMILIES,
    "fourier": fourier.FAMILIES,
    "gathers": gathers.FAMILIES,
    "indexing": indexing.FAMILIES,
    "linalg": linalg.FAMILIES,
    "loops": loops.FAMILIES,
    "reductions": reductions.FAMILIES,
    "rules": rules.FAMILIES,
    "shaping": shaping.FAMILIES,
    "writes": writes.FAMILIES,
}
# what is defined, and promised, at zeros, ties, infinities and nan
SPECIAL = {
    **specials.FAMILIES,
    "static": indexing.static,
    "views": shaping.views,
    "joins": shaping.joins,
}
TABLE: dict[str, Callable[[Builder], None]] = {
    name: f for module in MODULES.values() for name, f in module.items()
} | SPECIAL

"""Families of statements: functions that append one statement or a few to a body, by name."""

from collections.abc import Callable

from tests.fuzzing.builder import LARGE_FAMILIES, Builder
from tests.fuzzing.families import (
    contractions,
    counting,
    elementwise,
    fourier,
    gathers,
    indexing,
    kinks,
    linalg,
    loops,
    narrow,
    reductions,
    rows,
    rules,
    shaping,
    specials,
    stencils,
    wrapping,
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
    "stencils": stencils.FAMILIES,
    "writes": writes.FAMILIES,
}
# what is defined, and promised, at zeros, ties, infinities and nan
SPECIAL = {
    **specials.FAMILIES,
    "static": indexing.static,
    "views": shaping.views,
    "joins": shaping.joins,
}
# of large arrays, beside the others
LARGE = {name: rows.FAMILIES[name] for name in LARGE_FAMILIES}
# smooth functions, at kinks of the functions that they are composed of
KINKS = {**kinks.FAMILIES, "static": indexing.static, "views": shaping.views, "joins": shaping.joins}
# where every operation is rounded to its dtype
ROUNDED = {
    **narrow.FAMILIES,
    **{name: loops.FAMILIES[name] for name in ("scan", "fori", "cond", "called")},
    **{name: writes.FAMILIES[name] for name in ("element", "static_part", "scattered")},
    "integers": elementwise.integers,
    "static": indexing.static,
    "dynamic": indexing.dynamic,
    "gathers": gathers.gathers,
}
TABLE: dict[str, Callable[[Builder], None]] = (
    {name: f for module in MODULES.values() for name, f in module.items()}
    | SPECIAL
    | ROUNDED
    | LARGE
    | KINKS
    | wrapping.FAMILIES
)

"""Rows of every primitive: each module here but `sample` has those of a family, or of a part of one, in `ROWS`."""

import importlib
import pkgutil

from tests.samples.sample import Sample

SAMPLES: list[Sample] = [
    row
    for found in pkgutil.iter_modules(__path__)
    if found.name != "sample"
    for row in importlib.import_module(f"{__name__}.{found.name}").ROWS
]
FAMILIES: dict[str, list[Sample]] = {}
for _row in SAMPLES:
    FAMILIES.setdefault(_row.primitive.family.rpartition(".")[2], []).append(_row)

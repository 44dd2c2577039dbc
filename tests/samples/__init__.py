"""Rows of every family of primitives: each module here but `sample` has its own in `ROWS`."""

import importlib
import pkgutil

from tests.samples.sample import Sample

FAMILIES: dict[str, list[Sample]] = {
    found.name: list(importlib.import_module(f"{__name__}.{found.name}").ROWS)
    for found in pkgutil.iter_modules(__path__)
    if found.name != "sample"
}
SAMPLES: list[Sample] = [row for rows in FAMILIES.values() for row in rows]

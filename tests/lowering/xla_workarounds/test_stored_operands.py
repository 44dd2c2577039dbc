"""Concatenations that matrix products read are stored first on GPUs, where XLA would fuse them badly."""

import re
from typing import Any

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tapeless.lowering import emit
from tapeless.lowering.emit import with_stored_concatenations
from tapeless.tracer.check import check
from tapeless.tracer.jaxpr import eval_jaxpr

W, X = np.random.default_rng(0).normal(size=(2, 4, 4)).astype(np.float32)


def gates(w: Any, x: Any) -> Any:
    y = x @ w + 1.0
    return tnp.sum((tnp.tanh(y[:, :2]) * tnp.sin(y[:, 2:])) ** 2)


def scanned(w: Any, x: Any) -> Any:
    return lax.scan(lambda h, x: (tnp.concatenate([h, x]) @ w, h), x[0, :2], x[:, 2:])[0]


@pytest.mark.parametrize(("f", "n"), [(tl.grad(gates), 1), (lambda w, x: scanned(w[:, :2], x), 1), (gates, 0)])
def test_concatenations_that_products_read_are_stored(f: Any, n: int):
    before = tl.make_jaxpr(f)(W, X).jaxpr
    after = check(with_stored_concatenations(before))
    assert (after is before) == (n == 0) and str(after).count("materialize") == n
    text = {platform: emit.module(before, platform=platform).text for platform in ("cpu", "gpu")}
    joined = re.findall(r"(%\d+) = \"stablehlo.concatenate", text["gpu"])
    stored = re.findall(r"optimization_barrier\"\((%\d+)\)", text["gpu"])
    assert len(stored) == n and set(stored) <= set(joined)
    assert "optimization_barrier" not in text["cpu"]
    for found, wanted in zip(eval_jaxpr(after, (W, X)), eval_jaxpr(before, (W, X)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)

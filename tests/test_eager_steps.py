"""Eager operations that the oracle computes: XLA computes all of them later, and a difference is found."""

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.lowering import dispatch
from tests.eager_steps import by_steps
from tests.fuzzing import oracle

X = np.array([0.5, 1, 2], np.float32)


def test_all_operations_are_compiled_in_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_module = dispatch.compile_module
    monkeypatch.setattr(
        dispatch, "compile_module", lambda text, **rest: compiled.append(text) or compile_module(text, **rest)
    )
    with by_steps():
        found = [tnp.tan(X), tnp.tan(X), tnp.dot(X, X), tnp.logaddexp(X, 1.0), tnp.tan(-X)]
        assert compiled == []
    assert len(compiled) == 1
    for ours, theirs in zip(found, [np.tan(X), np.tan(X), X @ X, np.logaddexp(X, 1), np.tan(-X)], strict=True):
        assert isinstance(ours, tl.Array) and ours.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize(("name", "f", "off"), [
    ("tan", tnp.tan, lambda run, eqn, x: np.tan(x) * (1 + 1e-6)),
    ("add", lambda x: tnp.add(x, x), lambda run, eqn, x, y: (x + y) * (1 + 2e-7)),
    ("reduce_sum", tnp.sum, lambda run, eqn, x: np.sum(x) * (1 + 1e-4)),
])  # fmt: skip
def test_differences_are_found(monkeypatch: pytest.MonkeyPatch, name: str, f: object, off: object) -> None:
    monkeypatch.setitem(oracle.meanings, name, off)
    with pytest.raises(AssertionError, match=rf"(?s)= {name}\b.*by XLA, .* by the oracle"), by_steps():
        f(X)

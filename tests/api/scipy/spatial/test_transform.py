"""Rotations against SciPy: all representations, all sequences of axes and where they fall together, derivatives."""

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tapeless.scipy.spatial.transform import Rotation, Slerp
from tests.close import other_algorithms as close

pytestmark = pytest.mark.usefixtures("eager_by_steps")

RNG = np.random.default_rng(0)
QUAT = RNG.normal(size=(6, 4))
QUAT[:3] = [[0, 0, 0, 1], [1, 0, 0, 1e-9], [0, 1, 0, 0]]
TIMES = np.array([0, 1, 3.0, 4, 6, 7])


def same(found: Rotation, right: Any) -> None:
    """A quaternion and its negative are one rotation."""
    quat, wanted = np.asarray(found.quat), right.as_quat()
    close(quat * np.sign((quat * wanted).sum(-1, keepdims=True)), wanted)


def test_representations():
    theirs = pytest.importorskip("scipy.spatial.transform")
    ours, right = Rotation.from_quat(QUAT), theirs.Rotation.from_quat(QUAT)
    close(ours.as_matrix(), right.as_matrix())
    close(ours.as_rotvec(), right.as_rotvec())
    close(ours[3:].as_rotvec(degrees=True), right[3:].as_rotvec(degrees=True))
    close(ours[3:].as_mrp(), right[3:].as_mrp())
    close(ours.magnitude(), right.magnitude())
    close(ours.as_quat(canonical=True), right.as_quat(canonical=True))
    close(ours.as_quat(scalar_first=True), right.as_quat(scalar_first=True))
    same(Rotation.from_matrix(right.as_matrix()), right)
    same(Rotation.from_rotvec(right.as_rotvec()), right)
    same(Rotation.from_rotvec(right.as_rotvec(degrees=True), degrees=True), right)
    same(Rotation.from_mrp(right.as_mrp()), right)


def test_lists():
    """Of numbers, as SciPy takes them; they become float32."""
    theirs = pytest.importorskip("scipy.spatial.transform")
    ours, right = Rotation.from_quat([1, 2, 0, 2]), theirs.Rotation.from_quat([1, 2, 0, 2])
    close(ours.apply([0.5, 2.0, -1.0]), right.apply([0.5, 2.0, -1.0]), 1e-6, 1e-6)


def test_products_and_means(rng: np.random.Generator):
    theirs = pytest.importorskip("scipy.spatial.transform")
    ours, right = Rotation.from_quat(QUAT), theirs.Rotation.from_quat(QUAT)
    vectors, weights = rng.normal(size=(6, 3)), np.arange(1.0, 7)
    same(ours * Rotation.from_quat(QUAT[::-1]), right * theirs.Rotation.from_quat(QUAT[::-1]))
    same(ours.inv(), right.inv())
    for inverse in (False, True):
        close(ours.apply(vectors, inverse=inverse), right.apply(vectors, inverse=inverse))
    close(ours[0].apply(vectors), right[0].apply(vectors))
    close(ours.apply(vectors[0]), right.apply(vectors[0]))
    same(ours.mean(), right.mean())
    same(ours.mean(weights), right.mean(weights))
    at = np.array([0, 0.5, 1, 2.2, 6.9, 7])
    same(Slerp.init(TIMES, ours)(at), theirs.Slerp(TIMES, right)(at))
    assert Slerp.init(TIMES, ours)(0.5).single and len(ours) == 6
    assert len(Rotation.random(tl.random.key(0), 3)) == 3 and Rotation.identity().as_rotvec().tolist() == [0, 0, 0]
    assert len(Rotation.concatenate([ours, ours[0]])) == 7


@pytest.mark.parametrize("case", [str.lower, str.upper])
def test_angles(case: Any, rng: np.random.Generator):
    theirs = pytest.importorskip("scipy.spatial.transform")
    sequences = [case("".join(p)) for p in itertools.product("xyz", repeat=3) if p[0] != p[1] != p[2]]
    angles = rng.normal(size=(4, 3))
    locked = {True: [[0.3, 0.0, 0.4], [0.3, np.pi, 0.4]], False: [[0.3, np.pi / 2, 0.4], [0.3, -np.pi / 2, 0.4]]}
    quats = [theirs.Rotation.from_euler(s, locked[s[0] == s[2]]).as_quat() for s in sequences]

    @tl.jit
    def every() -> Any:
        there = [Rotation.from_euler(s, angles) for s in sequences]
        back = [Rotation.from_quat(QUAT[3:]).as_euler(s) for s in sequences]
        return there, back, [Rotation.from_quat(q).as_euler(s) for s, q in zip(sequences, quats, strict=True)]

    for s, rotation, back, fixed, quat in zip(sequences, *every(), quats, strict=True):
        same(rotation, theirs.Rotation.from_euler(s, angles))
        close(back, theirs.Rotation.from_quat(QUAT[3:]).as_euler(s))
        with warnings.catch_warnings(action="ignore"):
            close(fixed, theirs.Rotation.from_quat(quat).as_euler(s), 1e-6, 1e-6)
    for s, x in (("x", [[30.0], [40.0]]), ("XY", [[30.0, 40.0]]), ("z", 90.0)):
        same(Rotation.from_euler(case(s), np.array(x), True), theirs.Rotation.from_euler(case(s), x, True))


def test_derivatives():
    cases: list[tuple[Any, Any]] = [
        (lambda v: Rotation.from_rotvec(v).as_matrix(), np.zeros(3)),
        (lambda q: Rotation.from_quat(q).as_rotvec(), np.array([0.0, 0, 0, 1])),
        (lambda q: Rotation.from_quat(q).as_euler("xyz"), QUAT[4]),
        (lambda m: Rotation.from_matrix(m).quat, np.asarray(Rotation.from_quat(QUAT[3:]).as_matrix())),
    ]
    for f, x in cases:
        tl.testing.check_grads(tl.jit(f), (x,), 1, rtol=1e-5, eps=1e-5)


def test_bad_input():
    for message, call in {
        "from_euler: seq must be 1 or 2 or 3 of": lambda: Rotation.from_euler("xX", [1.0, 2]),
        "seq 'xx' has an axis twice": lambda: Rotation.from_euler("xx", np.ones(2)),
        "wants 3 angles": lambda: Rotation.from_euler("xyz", np.ones(2)),
        r"matrices must be \[.., 3, 3\]": lambda: Rotation.from_matrix(np.eye(2)),
        r"vectors must be \[.., 4\]": lambda: Rotation.from_quat(np.ones(3)),
        "weights must be one for each of 6": lambda: Rotation.from_quat(QUAT).mean(np.ones(2)),
        r"Slerp.init: times \[n\] and n rotations": lambda: Slerp.init(np.ones(2), Rotation.from_quat(QUAT)),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()

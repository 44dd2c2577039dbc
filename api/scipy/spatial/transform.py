"""Rotations under the names of `scipy.spatial.transform`.

A quaternion is (x, y, z, w), w being the real part; it and its negative are the same rotation. Source: Shuster 1993, "A
survey of attitude representations"; Bernardes & Viollet 2022, "Quaternion to Euler angles conversion", for the angles;
Shoemake 1985, "Animating rotation with quaternion curves". Derivatives are finite at the identity, too.
"""

import itertools
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tapeless.random import normal
from tapeless.tracer import core
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace
from tapeless.tracer.numpy.promotion import inexact
from tapeless.tracer.primitives.spectral import eigh

__all__ = ["Rotation", "Slerp"]


class Rotation(NamedTuple):
    """A rotation, or an array of rotations: unit quaternions [.., 4]."""

    quat: Array

    @classmethod
    def concatenate(cls, rotations: Sequence["Rotation"]) -> "Rotation":
        """Join rotations and arrays of rotations to one array."""
        return cls(tnp.concatenate([tnp.atleast_2d(r.quat) for r in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> "Rotation":
        """Make rotations from Euler angles: rotate about up to three axes, one after the other.

        Args:
          seq: the axes: "x", "y", "z", fixed (extrinsic), or "X", "Y", "Z", rotating along (intrinsic).
          angles: [.., len(seq)], or a number for a single axis.
          degrees: whether the angles are in degrees, not radians.
        Raises: ValueError for another seq, or one with an axis twice in a row, or another number of angles.
        """
        axes, intrinsic = _axes("from_euler", seq, (1, 2, 3))
        x = _vectors("from_euler", angles, degrees)
        x = x[None] if len(axes) == 1 and not x.ndim else x
        if not x.ndim or x.shape[-1] != len(axes):
            raise ValueError(f"Rotation.from_euler: seq {seq!r} wants {len(axes)} angles in the last axis: {x.aval}.")
        return cls(_from_euler(x, axes=axes, intrinsic=intrinsic))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> "Rotation":
        """Make rotations from orthogonal matrices [.., 3, 3] of determinant 1, which is not checked.

        Raises: ValueError for another shape.
        """
        x = _vectors("from_matrix", matrix)
        if x.ndim < 2 or x.shape[-2:] != (3, 3):
            raise ValueError(f"Rotation.from_matrix: matrices must be [.., 3, 3]: {x.aval}.")
        return cls(_from_matrix(x))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> "Rotation":
        """Make rotations from modified Rodrigues parameters [.., 3]: the axis times tan(angle / 4).

        Raises: ValueError for another size.
        """
        return cls(_from_mrp(_of_size("from_mrp", _vectors("from_mrp", mrp), 3)))

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> "Rotation":
        """Make rotations from quaternions [.., 4], which are normalized. Raises: ValueError for another size."""
        return cls(_normalized(_of_size("from_quat", _vectors("from_quat", quat), 4)))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> "Rotation":
        """Make rotations from vectors [.., 3] along the axis, as long as the angle.

        Raises: ValueError for another size.
        """
        return cls(_from_rotvec(_of_size("from_rotvec", _vectors("from_rotvec", rotvec, degrees), 3)))

    @classmethod
    def identity(cls, num: int | None = None, dtype: Any = float) -> "Rotation":
        """Make the identity rotation, or an array of `num` of them."""
        one = tnp.asarray([0.0, 0.0, 0.0, 1.0], dtype)
        return cls(one if num is None else tnp.tile(one, (num, 1)))

    @classmethod
    def random(cls, random_key: Any, num: int | None = None) -> "Rotation":
        """Draw a rotation uniformly by a PRNG key, or an array of `num` rotations."""
        return cls(_normalized(normal(random_key, (4,) if num is None else (num, 4))))

    def __getitem__(self, indexer: Any) -> "Rotation":  # pyright: ignore[reportIncompatibleMethodOverride] # rotations
        if self.single:
            raise TypeError("Rotation: a single rotation has no elements.")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Rotation: a single rotation has no length.")
        return self.quat.shape[0]

    def __mul__(self, other: "Rotation") -> "Rotation":  # pyright: ignore[reportIncompatibleMethodOverride] # rotations
        return Rotation(_normalized(_composed(self.quat, other.quat)))

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """Rotate vectors [.., 3], or apply the inverse rotation. Raises: ValueError for another size."""
        x = _of_size("apply", _vectors("apply", vectors), 3)
        matrix = self.as_matrix()
        return tnp.einsum("...ji,...j->...i" if inverse else "...ij,...j->...i", matrix, x)

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Return Euler angles [.., 3] about three axes, from -pi to pi.

        In gimbal lock, where two of the axes coincide, the third angle is 0.
        Raises: ValueError unless `seq` names three axes as for `from_euler`.
        """
        axes, intrinsic = _axes("as_euler", seq, (3,))
        angles = _as_euler(self.quat, axes=axes, intrinsic=intrinsic)
        return tnp.rad2deg(angles) if degrees else angles

    def as_matrix(self) -> Array:
        """Return orthogonal matrices [.., 3, 3]."""
        return _as_matrix(self.quat)

    def as_mrp(self) -> Array:
        """Return modified Rodrigues parameters [.., 3], of length at most 1."""
        sign = tnp.where(self.quat[..., 3:] < 0, -1, 1).astype(self.quat.dtype)
        return sign * self.quat[..., :3] / (1 + sign * self.quat[..., 3:])

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Return vectors [.., 3] along the axis, as long as the angle, which is at most pi."""
        found = _as_rotvec(self.quat)
        return tnp.rad2deg(found) if degrees else found

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """Return the quaternions [.., 4].

        Args:
          canonical: choose the sign by which the first nonzero element of w, x, y, z is positive.
          scalar_first: order the elements as (w, x, y, z).
        """
        quat = _canonical(self.quat) if canonical else self.quat
        return tnp.roll(quat, 1, axis=-1) if scalar_first else quat

    def inv(self) -> "Rotation":
        """Return the inverse rotations."""
        return Rotation(self.quat * np.array([-1, -1, -1, 1]).astype(self.quat.dtype))

    def magnitude(self) -> Array:
        """Return the angles [..], from 0 to pi."""
        return 2 * tnp.arctan2(_length(self.quat[..., :3]), tnp.abs(self.quat[..., 3]))

    def mean(self, weights: ArrayLike | None = None) -> "Rotation":
        """Return the mean of an array [n] of rotations: the rotation with the least weighted sum of squared distances.

        Raises: ValueError if weights are not [n].
        Source: Hartley et al. 2013, "Rotation averaging".
        """
        quat = tnp.atleast_2d(self.quat)
        w = tnp.ones(quat.shape[0], quat.dtype) if weights is None else tnp.asarray(weights, quat.dtype)
        if w.shape != quat.shape[:1]:
            raise ValueError(f"Rotation.mean: weights must be one for each of {quat.shape[0]} rotations: {w.aval}.")
        return Rotation(eigh((w[:, None] * quat).T @ quat)[0][:, -1])

    @property
    def single(self) -> bool:
        """Tell whether this is a single rotation, not an array."""
        return self.quat.ndim == 1


class Slerp(NamedTuple):
    """Spherical linear interpolation (slerp) between rotations at given times, made by `Slerp.init`."""

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> "Slerp":
        """Make the interpolation; calling it evaluates it.

        Args:
          times: [n], ascending.
          rotations: an array of n rotations, n being at least 2.
        Raises: TypeError if these are no rotations, ValueError if the numbers do not fit.
        """
        if not isinstance(rotations, Rotation):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"Slerp.init: rotations must be a Rotation, not {type(rotations).__name__}.")
        quat = rotations.quat
        at = tnp.asarray(times, quat.dtype)
        if quat.ndim != 2 or quat.shape[0] < 2 or at.shape != quat.shape[:1]:
            raise ValueError(f"Slerp.init: times [n] and n rotations, n at least 2, not {at.aval} and {quat.aval}.")
        first = Rotation(quat[:-1])
        return cls(at, tnp.diff(at), first, (first.inv() * Rotation(quat[1:])).as_rotvec())

    def __call__(self, times: ArrayLike) -> Rotation:
        """Interpolate at times [m], or at a single one. Raises: ValueError for more axes."""
        at = tnp.asarray(times, self.times.dtype)
        if at.ndim > 1:
            raise ValueError(f"Slerp: times must have at most one axis: {at.aval}.")
        flat = tnp.atleast_1d(at)
        i = tnp.clip(tnp.searchsorted(self.times, flat) - 1, 0, self.timedelta.shape[0] - 1)
        part = (flat - self.times[i]) / self.timedelta[i]
        found = self.rotations[i] * Rotation.from_rotvec(self.rotvecs[i] * part[:, None])
        return found if at.ndim else Rotation(found.quat[0])


# ---- arguments -----------------------------------------------------------------------------------------------


def _axes(name: str, seq: str, counts: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
    if not re.fullmatch("[xyz]+|[XYZ]+", seq) or len(seq) not in counts:
        wanted = " or ".join(map(str, counts))
        raise ValueError(f"Rotation.{name}: seq must be {wanted} of 'x', 'y', 'z', or of 'X', 'Y', 'Z', not {seq!r}.")
    if any(a == b for a, b in itertools.pairwise(seq)):
        raise ValueError(f"Rotation.{name}: seq {seq!r} has an axis twice in a row.")
    return tuple("xyz".index(a) for a in seq.lower()), seq.isupper()


def _vectors(name: str, x: ArrayLike, degrees: bool = False) -> Array:
    found = inexact(f"Rotation.{name}", tnp.asarray(x))
    return tnp.deg2rad(found) if degrees else found


def _of_size(name: str, x: Array, n: int) -> Array:
    if not x.ndim or x.shape[-1] != n:
        raise ValueError(f"Rotation.{name}: vectors must be [.., {n}]: {x.aval}.")
    return x


# ---- formulas ------------------------------------------------------------------------------------------------


def _parts(x: Any) -> list[Any]:
    return [x[..., i] for i in range(x.shape[-1])]


def _length(x: Any) -> Any:
    """Compute the lengths of vectors, with derivative 0 at 0."""
    squares = tnp.sum(x * x, axis=-1)
    return tnp.where(squares == 0, 0, tnp.sqrt(tnp.where(squares == 0, 1, squares)))


@core.compound
def _normalized(quat: Any) -> Any:
    return quat / tnp.sqrt(tnp.sum(quat * quat, axis=-1, keepdims=True))


@core.compound
def _composed(p: Any, q: Any) -> Any:
    (a, b, c, d), (x, y, z, w) = _parts(p), _parts(q)
    return tnp.stack(
        [
            d * x + a * w + b * z - c * y,
            d * y + b * w + c * x - a * z,
            d * z + c * w + a * y - b * x,
            d * w - a * x - b * y - c * z,
        ],
        -1,
    )


@core.compound
def _as_matrix(quat: Any) -> Any:
    x, y, z, w = _parts(quat)
    rows = [
        [x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), y * y - x * x - z * z + w * w, 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), z * z - x * x - y * y + w * w],
    ]
    return tnp.stack([tnp.stack(row, -1) for row in rows], -2)


@core.compound
def _from_matrix(m: Any) -> Any:
    """Compute the quaternion scaled by its greatest element, without cancellation; then normalize it."""
    diagonal = [m[..., i, i] for i in range(3)]
    trace = sum(diagonal[1:], diagonal[0])
    choice = tnp.argmax(tnp.stack([*diagonal, trace], -1), axis=-1)
    candidates: list[Any] = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        elements: dict[int, Any] = {i: 1 - trace + 2 * diagonal[i], j: m[..., j, i] + m[..., i, j]}
        elements |= {k: m[..., k, i] + m[..., i, k], 3: m[..., k, j] - m[..., j, k]}
        candidates.append(tnp.stack([elements[n] for n in range(4)], -1))
    off = [m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]]
    candidates.append(tnp.stack([*off, 1 + trace], -1))
    return _normalized(tnp.select([(choice == n)[..., None] for n in range(4)], candidates))


@core.compound
def _from_mrp(mrp: Any) -> Any:
    square = tnp.sum(mrp * mrp, axis=-1, keepdims=True)
    return tnp.concatenate([2 * mrp, 1 - square], -1) / (1 + square)


@core.compound
def _from_rotvec(v: Any) -> Any:
    """Compute quaternions of rotation vectors, with sin(angle / 2) / angle by its series near 0."""
    square = tnp.sum(v * v, axis=-1, keepdims=True)
    small = square < 1e-6
    angle = tnp.sqrt(tnp.where(small, 1, square))
    scale = tnp.where(small, 0.5 - square / 48 + square * square / 3840, tnp.sin(angle / 2) / angle)
    cosine = tnp.where(small, 1 - square / 8 + square * square / 384, tnp.cos(angle / 2))
    return tnp.concatenate([scale * v, cosine], -1)


@core.compound
def _as_rotvec(quat: Any) -> Any:
    """Compute rotation vectors of quaternions, with angle / sin(angle / 2) by its series near 0."""
    quat = tnp.where(quat[..., 3:] < 0, -quat, quat)
    vector, w = quat[..., :3], quat[..., 3:]
    square = tnp.sum(vector * vector, axis=-1, keepdims=True)
    small = square < 2.5e-7
    sine = tnp.sqrt(tnp.where(small, 1, square))
    series = 2 + square / 3 + 3 * square * square / 20
    return tnp.where(small, series, 2 * tnp.arctan2(sine, w) / sine) * vector


@core.compound
def _from_euler(angles: Any, *, axes: tuple[int, ...], intrinsic: bool) -> Any:
    found: Any = None
    for axis, angle in zip(axes, _parts(angles), strict=True):
        elements = [tnp.zeros_like(angle)] * 3 + [tnp.cos(angle / 2)]
        elements[axis] = tnp.sin(angle / 2)
        quat = tnp.stack(elements, -1)
        found = quat if found is None else _composed(found, quat) if intrinsic else _composed(quat, found)
    return found


@core.compound
def _as_euler(quat: Any, *, axes: tuple[int, ...], intrinsic: bool) -> Any:
    i, j, k = axes[::-1] if intrinsic else axes
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    sign = (i - j) * (j - k) * (k - i) // 2
    q = _parts(quat)
    if symmetric:
        a, b, c, d = q[3], q[i], q[j], q[k] * sign
    else:
        a, b, c, d = q[3] - q[j], q[i] + q[k] * sign, q[j] + q[3], q[k] * sign - q[i]
    middle = 2 * tnp.arctan2(tnp.hypot(c, d), tnp.hypot(a, b))
    half_sum, half_difference = tnp.arctan2(b, a), tnp.arctan2(d, c)
    same, opposite = tnp.abs(middle) <= 1e-7, tnp.abs(middle - math.pi) <= 1e-7
    alone = tnp.where(same, 2 * half_sum, 2 * half_difference * (1 if intrinsic else -1))
    low, high = half_sum - half_difference, half_sum + half_difference
    locked = same | opposite
    first, third = (high, low) if intrinsic else (low, high)
    first, third = tnp.where(locked, alone, first), tnp.where(locked, 0, third)
    if not symmetric:
        first, third = (first * sign, third) if intrinsic else (first, third * sign)
        middle = middle - math.pi / 2
    angles = tnp.stack([first, middle, third], -1)
    turn = 2 * math.pi
    return tnp.where(angles < -math.pi, angles + turn, tnp.where(angles > math.pi, angles - turn, angles))


@core.compound
def _canonical(quat: Any) -> Any:
    x, y, z, w = _parts(quat)
    negative = (w < 0) | ((w == 0) & ((x < 0) | ((x == 0) & ((y < 0) | ((y == 0) & (z < 0))))))
    return tnp.where(negative[..., None], -quat, quat)


_complete_namespace(globals())

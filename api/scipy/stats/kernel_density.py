"""Gaussian kernel density estimation, as in `scipy.stats`. Source: Silverman 1986."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapeless.nn import logsumexp
from tapeless.random import choice
from tapeless.random import multivariate_normal as draw_normal
from tapeless.scipy.special_functions.from_lax import ndtr
from tapeless.scipy.special_functions.gamma_relatives import check_real
from tapeless.scipy.stats import multivariate_normal
from tapeless.tracer import core, pytree
from tapeless.tracer import numpy as tnp
from tapeless.tracer.array import Array, ArrayLike
from tapeless.tracer.keys.prng_keys import split
from tapeless.tracer.numpy.promotion import array_operand, as_array, promoted_inexact_dtypes
from tapeless.tracer.numpy.systems import inv
from tapeless.tracer.primitives.linalg import cholesky

_FIELDS = ("neff", "dataset", "weights", "covariance", "inv_cov")


@pytree.register_pytree_node_class
class gaussian_kde:
    """A kernel density estimate of a sample's distribution: a weighted mean of normal densities around its points.

    A pytree of its attributes: neff, the effective number of points; dataset [d, n]; weights [n], which sum to 1;
    covariance [d, d] of each normal density, and its inverse, inv_cov.
    """

    __slots__ = _FIELDS

    neff: Any
    dataset: Any
    weights: Any
    covariance: Any
    inv_cov: Any

    def __init__(
        self,
        dataset: ArrayLike,
        bw_method: str | float | Array | Callable[[Any], Any] | None = None,
        weights: Any = None,
    ):
        """Estimate the density.

        Args:
          dataset: [d, n], n points; or [n], of one dimension. Real.
          bw_method: the bandwidth, as a factor of the sample's standard deviation: "scott" (n^(-1/(d + 4)); also None),
            "silverman", a number, or a function of this object that returns one.
          weights: [n], of the points; all equal if None.
        Raises: ValueError if there are less than two numbers, weights are not [n], or there is no such `bw_method`;
          TypeError for complex numbers.
        """
        given = [dataset] if weights is None else [dataset, weights]
        data, *others = (as_array(x) for x in promoted_inexact_dtypes("gaussian_kde", *given))
        check_real("gaussian_kde", data)
        data = tnp.atleast_2d(data)
        if data.ndim != 2 or data.size < 2:
            raise ValueError(f"gaussian_kde: dataset must be [d, n] or [n], of two numbers at least, not {data.aval}.")
        n = data.shape[1]
        if others and others[0].shape != (n,):
            raise ValueError(f"gaussian_kde: weights must be [{n}], one for each point, not {others[0].aval}.")
        self.dataset = data
        self.weights = others[0] / tnp.sum(others[0]) if others else tnp.full(n, 1 / n, data.dtype)
        self.neff = 1 / tnp.sum(self.weights**2)
        factor = self._width(bw_method)
        covariance = tnp.atleast_2d(tnp.cov(data, bias=False, aweights=self.weights))
        self.covariance, self.inv_cov = covariance * factor**2, inv(covariance) / factor**2

    def _width(self, method: Any) -> Any:
        if method is None or isinstance(method, str):
            if method not in (None, "scott", "silverman"):
                raise ValueError(f"gaussian_kde: bw_method must be 'scott', 'silverman' or a number, not {method!r}.")
            base = self.neff * (self.d + 2) / 4 if method == "silverman" else self.neff
            return base ** (-1 / (self.d + 4))
        factor: Any = method(self) if callable(method) else method
        if np.shape(factor):
            raise ValueError(f"gaussian_kde: bw_method must be one number, not of shape {np.shape(factor)}.")
        return factor

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Return the attributes as children, without static data."""
        return tuple(getattr(self, name) for name in _FIELDS), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Any) -> "gaussian_kde":
        """Rebuild the estimate from its attributes."""
        kde = cls.__new__(cls)
        for name, child in zip(_FIELDS, children, strict=True):
            setattr(kde, name, child)
        return kde

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of points in the sample."""
        return self.dataset.shape[1]

    def evaluate(self, points: ArrayLike) -> Array:
        """Evaluate the density at points [d, m], or [m] of one dimension, or a single point [d]: [m].

        Raises: ValueError for points of other dimensions, TypeError for complex numbers.
        """
        return tnp.exp(self.logpdf(points))

    def __call__(self, points: ArrayLike) -> Array:
        return self.evaluate(points)

    def pdf(self, x: ArrayLike) -> Array:
        """Evaluate the density: the same as `evaluate`."""
        return self.evaluate(x)

    def logpdf(self, x: ArrayLike) -> Array:
        """Evaluate the logarithm of the density at points, which are as for `evaluate`.

        Raises: ValueError for points of other dimensions, TypeError for complex numbers.
        """
        return _log_density(self.dataset, self.weights, self.inv_cov, self._points("gaussian_kde.logpdf", x))

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """Integrate the density times a normal density with a mean [d] and covariances [d, d]: a scalar.

        Raises: ValueError for other shapes.
        """
        mean, cov = tnp.atleast_1d(tnp.squeeze(mean)), tnp.atleast_2d(cov)
        if mean.shape != (self.d,) or cov.shape != (self.d, self.d):
            d = self.d
            raise ValueError(
                f"gaussian_kde.integrate_gaussian: mean [{d}] and cov [{d}, {d}], not {mean.aval} and {cov.aval}."
            )
        return tnp.sum(self.weights * multivariate_normal.pdf(self.dataset.T, mean, self.covariance + cov))

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """Integrate the density between two numbers: a scalar. Raises: ValueError for more than one dimension."""
        if self.d != 1 or np.ndim(low) or np.ndim(high):
            raise ValueError("gaussian_kde.integrate_box_1d: one dimension, and two numbers to integrate between.")
        sigma = tnp.sqrt(self.covariance[0, 0])
        below, above = ((x - self.dataset[0]) / sigma for x in (low, high))
        return tnp.sum(self.weights * (ndtr(above) - ndtr(below)))

    def integrate_kde(self, other: "gaussian_kde") -> Array:
        """Integrate the product with another estimate: a scalar. Raises: ValueError if dimensions differ."""
        if other.d != self.d:
            raise ValueError(f"gaussian_kde.integrate_kde: the estimates have {self.d} and {other.d} dimensions.")
        points = self.dataset.T[:, None], other.dataset.T
        products = multivariate_normal.pdf(*points, self.covariance + other.covariance)
        return self.weights @ products @ other.weights

    def resample(self, key: Any, shape: Any = ()) -> Array:
        """Draw points [d, *shape] from the estimate by a PRNG key, with JAX's bits."""
        which, around = split(key)
        at = choice(which, self.n, shape, p=self.weights)
        zero = tnp.zeros(self.d, self.covariance.dtype)
        noise = draw_normal(around, zero, self.covariance, shape=shape, dtype=self.dataset.dtype)
        return self.dataset[:, at] + tnp.moveaxis(noise, -1, 0)

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Array:
        """Raise NotImplementedError: only the integral over one dimension is supported, by `integrate_box_1d`."""
        raise NotImplementedError("gaussian_kde.integrate_box: one dimension only: integrate_box_1d.")

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Raise NotImplementedError: the bandwidth is set by the constructor."""
        raise NotImplementedError("gaussian_kde.set_bandwidth: make another estimate with gaussian_kde(.., bw_method).")

    def _points(self, name: str, x: ArrayLike) -> Array:
        points = array_operand(name, x)
        check_real(name, points)
        points = tnp.atleast_2d(points)
        if points.shape == (1, self.d):
            points = points.reshape(self.d, 1)
        if points.ndim != 2 or points.shape[0] != self.d:
            raise ValueError(f"{name}: points must be [{self.d}, m], not {points.aval}.")
        return points


@core.compound
def _log_density(data: Any, weights: Any, precision: Any, points: Any) -> Any:
    """Sum the kernels, in coordinates in which their covariance is the identity (whitened)."""
    data, weights, precision, points = promoted_inexact_dtypes("gaussian_kde.logpdf", data, weights, precision, points)
    factor = cholesky(precision)
    sample, at = factor.T @ data, factor.T @ points
    squares = sum(
        tnp.square(x[:, None] - y[None, :]) for x, y in zip(tnp.unstack(at), tnp.unstack(sample), strict=True)
    )
    logarithms = tnp.sum(tnp.log(tnp.diagonal(factor))) - 0.5 * data.shape[0] * math.log(2 * math.pi)
    return logsumexp(-0.5 * squares, axis=1, b=weights) + logarithms

"""Reports about complex numbers: conventions of derivatives, branch cuts, Fourier transforms."""

import cmath

import mpmath
import numpy as np

import tapeless as tl
import tapeless.numpy as tnp
from tests.public_reports.report import Refusal, Report, drawn, f64

Z = f64(1, -0.3, 0.2) + 1j * f64(0.5, 0.7, -1.1)
SMALL = np.complex64


def by_digits(name):
    """A function of mpmath, at 40 digits, of every element."""

    def f(z):
        with mpmath.workdps(40):
            return np.array(
                [complex(getattr(mpmath, name)(mpmath.mpc(complex(w)))) for w in np.ravel(z)], np.complex128
            )

    return f


def inverse_sine(x, k):
    return np.fft.irfft(x, 6)[k]


ROWS = [
    Report(
        "jax-ml/jax#979",
        "absolute values in two ways have one gradient",
        lambda z: (tnp.abs(z), tnp.sqrt(z.real**2 + z.imag**2)),
        (Z,),
        lambda z: (np.abs(z), np.abs(z)),
    ),
    Report(
        "jax-ml/jax#10515",
        "an absolute value at 0",
        tnp.abs,
        (f64(1, 0, -1) + 0j,),
        np.abs,
        slopes=(f64(1, 0, -1) + 0j,),
    ),
    Report(
        "jax-ml/jax#25681",
        "an absolute value at infinity",
        tnp.abs,
        (np.array([complex(np.inf, 0), complex(-np.inf, 0)]),),
        f64(np.inf, np.inf),
        slopes=(f64(1, -1) + 0j,),
        mapped=False,
        fault="nan, by infinity over infinity",
    ),
    Report(
        "jax-ml/jax#10206",
        "the product of three complex numbers, two of them constants",
        lambda x: tnp.abs(tnp.prod(tnp.stack([x + 0j, tnp.asarray(1 + 0j), tnp.asarray(1 + 0j)]))),
        (f64(1.3)[0],),
        np.abs,
    ),
    Report(
        "jax-ml/jax#603",
        "a cosine of a norm",
        lambda z: tnp.cos(tnp.linalg.norm(2 * z)),
        (Z,),
        lambda z: np.cos(np.linalg.norm(2 * z)),
        hessian=True,
    ),
    Refusal(
        "HIPS/autograd#577",
        "a holomorphic gradient at a real number",
        lambda x: tl.grad(lambda x: (x + 1j) * (x + 1j), holomorphic=True)(x),
        (f64(1)[0],),
        TypeError,
        ("holomorphic", "complex"),
    ),
    Report(
        "patrick-kidger/optimistix#61",
        "a holomorphic gradient is not conjugated",
        tl.vmap(tl.grad(lambda z: z**2 + tnp.exp(z), holomorphic=True)),
        (Z,),
        lambda z: 2 * z + np.exp(z),
    ),
    Report(
        "jax-ml/jax#19398",
        "an inverse sine far from the real axis",
        tnp.arcsin,
        (np.array([-3 - 3498384j, 2 + 1e12j, 1e-3 - 5e7j], SMALL),),
        by_digits("asin"),
        slopes=None,
        rtol=1e-6,
    ),
    Report(
        "openxla/xla#8553",
        "an inverse hyperbolic sine in the lower half plane",
        tnp.arcsinh,
        (np.array([-1 - 101999j, 1 - 101999j, -2e6 + 1e3j], SMALL),),
        by_digits("asinh"),
        slopes=None,
        rtol=1e-6,
    ),
    Report(
        "jax-ml/jax#17172",
        "a tangent far from the real axis, and an inverse cosine",
        lambda z: (tnp.tan(z), tnp.arccos(100 * z)),
        (np.array([-1 - 45j, 0.5 + 20j], SMALL),),
        lambda z: (by_digits("tan")(z), by_digits("acos")(100 * z)),
        slopes=None,
        rtol=1e-6,
    ),
    Report(
        "numpy/numpy#26310",
        "an inverse sine on its branch cut",
        lambda z: (tnp.arcsin(z), tnp.arcsin(tnp.conj(z))),
        (np.array([2 + 0j, -2 + 0j]),),
        lambda z: (np.arcsin(z), np.arcsin(np.conj(z))),
        slopes=None,
    ),
    Report(
        "pearu/functional_algorithms#38",
        "an inverse sine of huge numbers, on both sides of the cut",
        tnp.arcsin,
        (np.array([1e37 - 1e-30j, -1e37 - 1e-30j, 1e35 + 1j], SMALL),),
        lambda z: np.array([cmath.asin(w) for w in z]),
        slopes=None,
        rtol=1e-6,
    ),
    Report(
        "JuliaLang/julia#31054",
        "inverse tangents beside the branch points",
        lambda z: (tnp.arctan(z), tnp.arctanh(z)),
        (np.array([1 + 1j, 1 + 1e-9j, 2 - 0.1j, -1 - 1e-9j]),),
        lambda z: (by_digits("atan")(z), by_digits("atanh")(z)),
        slopes=None,
        rtol=1e-6,  # one ulp of the real part is a billionth of the distance
    ),
    Report(
        "jax-ml/jax#6223",
        "the transpose of an inverse real transform",
        lambda y: (lambda g: (g.real, g.imag))(
            tl.linear_transpose(lambda x: tnp.fft.irfft(x, 6), Z[[0, 1, 2, 0]])(y)[0]
        ),
        (drawn(6),),
        lambda y: (lambda m: (m.real @ y, m.imag @ y))(transposed_irfft()),
    ),
    Report(
        "EnzymeAD/Enzyme-JAX#2071",
        "energies of a transform by the imaginary part",
        lambda x, y: (tnp.abs(tnp.fft.fft2(x + 1j * y)) ** 2).sum(),
        (drawn(3, 3), drawn(3, 3, seed=1)),
        lambda x, y: 9 * np.sum(x**2 + y**2),
        hessian=True,
    ),
    Report(
        "EnzymeAD/Reactant.jl#2693",
        "a transform and back, squared",
        lambda x: (tnp.fft.ifft(tnp.fft.fft(x)) ** 2).sum().real,
        (drawn(8),),
        lambda x: np.sum(x**2),
        hessian=True,
    ),
    Report(
        "ml-explore/mlx#4138",
        "a transform along one of two axes",
        lambda z: tnp.fft.fft(z, axis=0),
        (drawn(4, 5) + 1j * drawn(4, 5, seed=1),),
        lambda z: np.fft.fft(z, axis=0),
    ),
    Report(
        "tensor4all/tenferro-rs#1229",
        "transforms that pad, and that cut",
        lambda z: (tnp.fft.fft(z, 5), tnp.fft.ifft(z, 2)),
        (Z,),
        lambda z: (np.fft.fft(z, 5), np.fft.ifft(z, 2)),
    ),
    Report(
        "EnzymeAD/Reactant.jl#246",
        "a real transform of two axes",
        lambda x: tnp.abs(tnp.fft.rfft2(x)) ** 2,
        (drawn(3, 4),),
        lambda x: np.abs(np.fft.rfft2(x)) ** 2,
    ),
    Report(
        "EnzymeAD/Enzyme-JAX#170",
        "a real transform and back, of odd length",
        lambda x: tnp.fft.irfft(tnp.fft.rfft(x) * f64(1, 2, 3), 5),
        (drawn(5),),
        lambda x: np.fft.irfft(np.fft.rfft(x) * f64(1, 2, 3), 5),
    ),
    Report(
        "SciML/FluxNeuralOperators.jl#151",
        "a filter by real transforms, as by complex ones",
        lambda x, w: tnp.fft.irfft(tnp.fft.rfft(x) * tnp.fft.rfft(w)),
        (drawn(6), drawn(6, seed=1)),
        lambda x, w: np.fft.ifft(np.fft.fft(x) * np.fft.fft(w)).real,
        hessian=True,
    ),
    Report(
        "jax-ml/jax#14302",
        "a checkpoint around transforms, differentiated by what is not transformed",
        lambda x, w: tl.checkpoint(lambda x, w: tnp.fft.ifftn(w * tnp.fft.fftn(x * w)).real)(x, w),
        (drawn(4, 4), drawn(4, 4, seed=1)),
        lambda x, w: np.fft.ifftn(w * np.fft.fftn(x * w)).real,
    ),
]


def transposed_irfft():
    """The matrix of the transposed inverse real transform of length 6, without conjugation, column by column.

    What the transform ignores, the imaginary parts of the first and last element, has no cotangent.
    """
    units = np.eye(4)
    real = np.fft.irfft(units, 6)
    imaginary = np.fft.irfft(1j * units, 6)
    return real - 1j * imaginary

"""Rows of Fourier transforms."""

from typing import Any

import numpy as np

from tests.numpy_agreement.cases import Case, Row, call, numbers, of_kinds

X, REAL, CUBE = numbers("complex64", (3, 5)), numbers("float32", (3, 5)), numbers("float32", (2, 3, 4))
WIDE, DEEP = numbers("float64", (5, 8)), numbers("float64", (2, 3, 1, 2, 5))
NORMS = (None, "backward", "ortho", "forward")
TWICE = {
    "axes that are named twice, as JAX refuses them; NumPy transforms them twice": lambda case: (
        case.kwargs.get("axes") in ((0, 0), (1, -1))
    )
}


def one_axis(kinds: str, halves: bool = True, nothing: bool = True) -> Row:
    """Every dtype of some kinds; lengths up to more than there is, axes, norms, and what is refused.

    halves: whether half precision is given. NumPy's inverses have their factor, or their result, in half precision.
    nothing: whether no elements are lengthened. Of none, NumPy's inverses to real numbers read what is not theirs.
    """
    x = X if "c" in kinds else REAL
    cases = [call(numbers(d, (2, 5))) for d in of_kinds(kinds) if halves or d != np.float16]
    cases += [call(x, n) for n in (1, 2, 3, 4, 5, 6, 7, 8, 16)]
    cases += [call(WIDE, n, 0, norm) for n in (None, 4, 7) for norm in NORMS]
    cases += [call(CUBE, n=6, axis=1, norm="ortho"), call(CUBE, axis=0), call(CUBE, None, -2), call(CUBE[:, :, :2])]
    cases += [call(x[:0]), call(x[:0, :0], 3), call(numbers("float32", (2, 3)))] + [call(x[:, :0], 4)] * nothing
    return Row([*cases, *_refused(x)], inexact=True, tolerance=100)


def _refused(x: Any) -> list[Case]:
    bad: list[dict[str, Any]] = [{"n": 0}, {"n": -1}, {"n": 2.5}, {"axis": 2}, {"axis": -3}, {"norm": "none"}]
    return [*[call(x, **given) for given in bad], call(x[0, 0]), call(x[:, :0])]


def several_axes(kinds: str, halves: bool = True, nothing: bool = True, none: bool = True) -> Row:
    """Every dtype of some kinds; axes in any order, lengths of them, norms, and what is refused.

    halves, nothing: as for one axis.
    none: whether no axes may be named, which are all then.
    """
    x = X if "c" in kinds else REAL
    cases = [call(numbers(d, (2, 5))) for d in of_kinds(kinds) if halves or d != np.float16]
    cases += [call(CUBE, axes=axes) for axes in ((0, 1), (2, 0), (-1, -3), (1,), (0, 2, 1))]
    cases += [call(CUBE, s, (0, 2), norm) for s in (None, (3, 3), (1, 7), (4, 1)) for norm in NORMS]
    cases += [call(CUBE, s=(2, 5, 2), axes=(2, 1, 0)), call(x[:0], (2, 2), (0, 1))]
    cases += [call(x[:, :0], (3, 4), (0, 1))] * nothing
    cases += [call(DEEP, axes=(0, 1, 2, 3, 4)), call(DEEP, (3, 2, 2, 3, 4), (4, 0, 2, 1, 3), "ortho")]
    cases += [call(x, (4, 4)), call(CUBE, (3, 5))] + ([call(DEEP), call(CUBE, (5,)), call(CUBE)] if none else [])
    bad: list[dict[str, Any]] = [
        {"s": (0, 2), "axes": (0, 1)},
        {"s": (2,), "axes": (0, 1)},
        {"axes": (0, 2)},
        {"axes": (0, 0)},
        {"axes": (1, -1)},
        {"norm": "none"},
    ]
    return Row(
        [*cases, *[call(x, **given) for given in bad], call(x[:, :0])], inexact=True, tolerance=100, refuses=TWICE
    )


def frequencies() -> Row:
    cases = [call(n) for n in (1, 2, 3, 4, 5, 8, 9)] + [
        call(5, 0.25),
        call(4, d=-3),
        call(n=6, d=numbers("float32", ())),
    ]
    return Row([*cases, call(0), call(2.5)])


def shifted() -> Row:
    cases = [call(numbers(d, (4, 5))) for d in of_kinds("biufc")]
    cases += [call(CUBE, axes=axes) for axes in (None, 0, -1, (0, 2), (1, 1), [2, 1], ())]
    return Row([*cases, call(CUBE[:0]), call(REAL[0]), call(CUBE, 3), call(CUBE, (0, -4))])


ROWS = {
    "fft.fft": one_axis("biufc"),
    "fft.ifft": one_axis("biufc", halves=False),
    "fft.rfft": one_axis("biuf"),
    "fft.irfft": one_axis("biufc", halves=False, nothing=False),
    "fft.hfft": one_axis("biufc", halves=False, nothing=False),
    "fft.ihfft": one_axis("biuf", halves=False),
    "fft.fftn": several_axes("biufc"),
    "fft.ifftn": several_axes("biufc", halves=False),
    "fft.rfftn": several_axes("biuf"),
    "fft.irfftn": several_axes("biufc", halves=False, nothing=False),
    "fft.fft2": several_axes("biufc", none=False),
    "fft.ifft2": several_axes("biufc", halves=False, none=False),
    "fft.rfft2": several_axes("biuf", none=False),
    "fft.irfft2": several_axes("biufc", halves=False, nothing=False, none=False),
    "fft.fftfreq": frequencies(),
    "fft.rfftfreq": frequencies(),
    "fft.fftshift": shifted(),
    "fft.ifftshift": shifted(),
}

"""The special cases of the array API standard, 2024.12, of functions of elements: signed zeros, infinities, nan.

A row is `operands: result`. The operands `x` and `y` are one, two, or of complex functions the real and the imaginary
part: numbers, or names of `KINDS`. A result is an expression in them, of complex functions two; `~` before one leaves
its sign open. Where the standard says that a function is as another one of iz, `AS_IF` does.

Not taken over, but in `FORGONE`: floor_divide of infinities, and by them, where the standard's notes allow Python's
results; sqrt of -inf + yi and of inf + yi, where it contradicts C99, its own limits and NumPy: C99's rows are here. The
sign of the imaginary part of tanh(inf + yi) is that of sin(2 y) there, and open here.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

KINDS: dict[str, Callable[[float], Any]] = {
    "any": lambda x: True,
    "real": lambda x: not np.isnan(x),
    "finite": np.isfinite,
    "nonzero": lambda x: np.isfinite(x) and x != 0,
    "positive": lambda x: 0 < x < np.inf,
    "negative": lambda x: -np.inf < x < 0,
    "whole": lambda x: np.isfinite(x) and x == np.floor(x),
    ">0": lambda x: x > 0,
    "<0": lambda x: x < 0,
    ">1": lambda x: x > 1,
    "<1": lambda x: x < 1,
    "<-1": lambda x: x < -1,
    "|>1|": lambda x: abs(x) > 1,
    "|<1|": lambda x: abs(x) < 1,
    "|1|": lambda x: abs(x) == 1,
    "|0|": lambda x: x == 0,
    "|inf|": np.isinf,
    "!=0": lambda x: x != 0,  # nan among them
    "!=1": lambda x: x != 1,
    "odd>0": lambda x: 0 < x < np.inf and x % 2 == 1,
    "odd<0": lambda x: -np.inf < x < 0 and x % 2 == 1,
    "other>0": lambda x: x > 0 and not (x < np.inf and x % 2 == 1),
    "other<0": lambda x: x < 0 and not (x > -np.inf and x % 2 == 1),
    "fraction": lambda x: np.isfinite(x) and x != np.floor(x),
}

KEEPS_ALL = "nan: nan; inf: inf; -inf: -inf; 0: 0; -0: -0"
ROUNDS = f"{KEEPS_ALL}; whole: x"
ODD = "nan: nan; 0: 0; -0: -0"
LOGARITHM = "nan: nan; <0: nan; |0|: -inf; 1: 0; inf: inf"

ONE = {
    "abs": "nan: nan; -0: 0; -inf: inf",
    "acos": "nan: nan; >1: nan; <-1: nan; 1: 0",
    "acosh": "nan: nan; <1: nan; 1: 0; inf: inf",
    "asin": f"{ODD}; >1: nan; <-1: nan",
    "asinh": KEEPS_ALL,
    "atan": f"{ODD}; inf: pi / 2; -inf: -pi / 2",
    "atanh": f"{ODD}; <-1: nan; >1: nan; -1: -inf; 1: inf",
    "ceil": ROUNDS,
    "cos": "nan: nan; |0|: 1; |inf|: nan",
    "cosh": "nan: nan; |0|: 1; |inf|: inf",
    "exp": "nan: nan; |0|: 1; inf: inf; -inf: 0",
    "expm1": f"{ODD}; inf: inf; -inf: -1",
    "floor": ROUNDS,
    "isfinite": "|inf|: 0; nan: 0; finite: 1",
    "isinf": "|inf|: 1; nan: 0; finite: 0",
    "isnan": "nan: 1; real: 0",
    "log": LOGARITHM,
    "log10": LOGARITHM,
    "log1p": f"{ODD}; <-1: nan; -1: -inf; inf: inf",
    "log2": LOGARITHM,
    "reciprocal": "nan: nan; 0: inf; -0: -inf; inf: 0; -inf: -0.",
    "round": ROUNDS + "; 0.5: 0; 1.5: 2; 2.5: 2; -0.5: -0.; -1.5: -2; -2.5: -2",
    "sign": "<0: -1; |0|: ~0; >0: 1; nan: nan",
    "signbit": "0: 0; -0: 1; inf: 0; -inf: 1; positive: 0; negative: 1",
    "sin": f"{ODD}; |inf|: nan",
    "sinh": KEEPS_ALL,
    "sqrt": f"{ODD}; <0: nan; inf: inf",
    "square": "nan: nan; |0|: 0; |inf|: inf",
    "tan": f"{ODD}; |inf|: nan",
    "tanh": f"{ODD}; inf: 1; -inf: -1",
    "trunc": ROUNDS,
}

NANS = "nan any: nan; any nan: nan"
QUOTIENT = f"""{NANS}; |inf| |inf|: nan; |0| |0|: nan; 0 >0: 0; -0 >0: -0; 0 <0: -0; -0 <0: 0;
    >0 0: inf; >0 -0: -inf; <0 0: -inf; <0 -0: inf; positive inf: 0; negative -inf: 0"""

TWO = {
    "add": f"""{NANS}; inf -inf: nan; -inf inf: nan; inf inf: inf; -inf -inf: -inf; inf finite: inf;
        -inf finite: -inf; finite inf: inf; finite -inf: -inf; -0 -0: -0; -0 0: 0; 0 -0: 0; 0 0: 0;
        |0| nonzero: y; nonzero |0|: x""",
    "atan2": f"""{NANS}; >0 |0|: pi / 2; 0 >0: 0; 0 0: 0; 0 -0: pi; 0 <0: pi; -0 >0: -0; -0 0: -0; -0 -0: -pi;
        -0 <0: -pi; <0 |0|: -pi / 2; positive inf: 0; positive -inf: pi; negative inf: -0; negative -inf: -pi;
        inf finite: pi / 2; -inf finite: -pi / 2; inf inf: pi / 4; inf -inf: 3 * pi / 4;
        -inf inf: -pi / 4; -inf -inf: -3 * pi / 4""",
    "copysign": """real <0: -abs(x); real -0: -abs(x); real 0: abs(x); real >0: abs(x); nan any: nan;
        real nan: abs(x)""",
    "divide": f"""{QUOTIENT}; inf positive: inf; inf negative: -inf; -inf positive: -inf; -inf negative: inf;
        positive -inf: -0; negative inf: -0; nonzero nonzero: x / y""",
    "equal": "nan any: 0; any nan: 0; inf inf: 1; -inf -inf: 1; |0| |0|: 1; finite finite: x == y; "
    "inf finite: 0; -inf finite: 0; inf -inf: 0",
    "floor_divide": f"{QUOTIENT}; nonzero nonzero: np.floor(x / y)",
    "hypot": """|inf| any: inf; any |inf|: inf; |0| any: abs(y); any |0|: abs(x); finite nan: nan; nan nan: nan;
        nan finite: nan""",
    "logaddexp": f"{NANS}; inf real: inf; real inf: inf",
    "maximum": NANS,
    "minimum": NANS,
    "multiply": f"""{NANS}; |inf| |0|: nan; |0| |inf|: nan; >0 >0: x * y; <0 <0: x * y; >0 <0: x * y; <0 >0: x * y;
        |0| finite: x * y; finite |0|: x * y""",
    "nextafter": f"{NANS}; -0 0: 0; 0 -0: -0",
    "not_equal": """nan any: 1; any nan: 1; inf -inf: 1; -inf inf: 1; finite finite: x != y; inf inf: 0;
        -inf -inf: 0""",
    "pow": """!=1 nan: nan; any |0|: 1; nan !=0: nan; |>1| inf: inf; |>1| -inf: 0; |1| |inf|: 1; 1 real: 1;
        |<1| inf: 0; |<1| -inf: inf; inf >0: inf; inf <0: 0; -inf odd>0: -inf; -inf other>0: inf; -inf odd<0: -0;
        -inf other<0: 0; 0 >0: 0; 0 <0: inf; -0 odd>0: -0; -0 other>0: 0; -0 odd<0: -inf; -0 other<0: inf;
        negative fraction: nan""",
    "remainder": f"""{NANS}; |inf| |inf|: nan; |0| |0|: nan; |0| >0: 0; |0| <0: -0; !=0 |0|: nan; |inf| nonzero: nan;
        positive inf: x; positive -inf: y; negative inf: y; negative -inf: x; nonzero nonzero: x % y""",
    "subtract": f"""{NANS}; inf inf: nan; -inf -inf: nan; inf -inf: inf; -inf inf: -inf; 0 0: 0; -0 0: -0; 0 -0: 0;
        -0 -0: 0; finite inf: -inf; finite -inf: inf""",
}

COMPLEX = {
    "abs": """|inf| any: inf; any |inf|: inf; |0| any: abs(y); any |0|: abs(x); nan finite: nan; finite nan: nan;
        nan nan: nan""",
    "acos": """|0| 0: pi / 2, -0; |0| nan: pi / 2, nan; finite inf: pi / 2, -inf; nonzero nan: nan, nan;
        -inf positive: pi, -inf; inf positive: 0, -inf; -inf inf: 3 * pi / 4, -inf; inf inf: pi / 4, -inf;
        |inf| nan: nan, ~inf; nan finite: nan, nan; nan inf: nan, -inf; nan nan: nan, nan""",
    "acosh": """|0| 0: 0, pi / 2; finite inf: inf, pi / 2; nonzero nan: nan, nan; 0 nan: nan, ~pi / 2;
        -inf positive: inf, pi; inf positive: inf, 0; -inf inf: inf, 3 * pi / 4; inf inf: inf, pi / 4;
        |inf| nan: inf, nan; nan finite: nan, nan; nan inf: inf, nan; nan nan: nan, nan""",
    "asinh": """0 0: 0, 0; positive inf: inf, pi / 2; finite nan: nan, nan; inf positive: inf, 0;
        inf inf: inf, pi / 4;
        nan 0: nan, 0; nan nonzero: nan, nan; nan inf: ~inf, nan; nan nan: nan, nan""",
    "atanh": """0 0: 0, 0; 0 nan: 0, nan; 1 0: inf, 0; positive inf: 0, pi / 2; nonzero nan: nan, nan;
        inf positive: 0, pi / 2; inf inf: 0, pi / 2; inf nan: 0, nan; nan finite: nan, nan; nan inf: ~0, pi / 2;
        nan nan: nan, nan""",
    "cosh": """0 0: 1, 0; 0 inf: nan, ~0; 0 nan: nan, ~0; nonzero inf: nan, nan; nonzero nan: nan, nan; inf 0: inf, 0;
        inf nonzero: inf * np.cos(y), inf * np.sin(y); inf inf: ~inf, nan; inf nan: inf, nan; nan |0|: nan, ~0;
        nan nonzero: nan, nan; nan nan: nan, nan""",
    "exp": """|0| 0: 1, 0; finite inf: nan, nan; finite nan: nan, nan; inf 0: inf, 0;
        -inf nonzero: 0 * np.cos(y), 0 * np.sin(y); -inf |0|: 0, ~0;
        inf nonzero: inf * np.cos(y), inf * np.sin(y); -inf inf: ~0, ~0;
        inf inf: ~inf, nan; -inf nan: ~0, ~0; inf nan: ~inf, nan; nan 0: nan, 0; nan !=0: nan, nan""",
    "expm1": """|0| 0: 0, 0; finite inf: nan, nan; finite nan: nan, nan; inf 0: inf, 0;
        -inf nonzero: 0 * np.cos(y) - 1, 0 * np.sin(y); -inf |0|: -1, ~0;
        inf nonzero: inf * np.cos(y) - 1, inf * np.sin(y);
        -inf inf: -1, ~0; inf inf: ~inf, nan; -inf nan: -1, ~0; inf nan: ~inf, nan; nan 0: nan, 0;
        nan !=0: nan, nan""",
    "isfinite": "nan any: 0; any nan: 0; |inf| any: 0; any |inf|: 0; finite finite: 1",
    "isinf": "|inf| any: 1; any |inf|: 1; finite finite: 0; nan finite: 0; finite nan: 0; nan nan: 0",
    "isnan": "nan any: 1; any nan: 1; real real: 0",
    "log": """-0 0: -inf, pi; 0 0: -inf, 0; finite inf: inf, pi / 2; finite nan: nan, nan; -inf positive: inf, pi;
        inf positive: inf, 0; -inf inf: inf, 3 * pi / 4; inf inf: inf, pi / 4; |inf| nan: inf, nan;
        nan finite: nan, nan;
        nan inf: inf, nan; nan nan: nan, nan""",
    "log1p": """-1 0: -inf, 0; finite inf: inf, pi / 2; finite nan: nan, nan; -inf positive: inf, pi;
        inf positive: inf, 0;
        -inf inf: inf, 3 * pi / 4; inf inf: inf, pi / 4; |inf| nan: inf, nan; nan finite: nan, nan; nan inf: inf, nan;
        nan nan: nan, nan""",
    "negative": "real real: -x, -y",
    "round": """|inf| real: x, np.rint(y); real |inf|: np.rint(x), y; finite finite: np.rint(x), np.rint(y);
        nan nan: nan, nan""",
    "sign": "|0| |0|: 0, 0; nan any: nan, nan; any nan: nan, nan",
    "sinh": """0 0: 0, 0; 0 inf: ~0, nan; 0 nan: ~0, nan; positive inf: nan, nan; positive nan: nan, nan;
        inf 0: inf, 0;
        inf positive: inf * np.cos(y), inf * np.sin(y); inf inf: ~inf, nan; inf nan: ~inf, nan; nan 0: nan, 0;
        nan nonzero: nan, nan; nan nan: nan, nan""",
    "sqrt": """|0| 0: 0, 0; any inf: inf, inf; finite nan: nan, nan; -inf positive: 0, inf; inf positive: inf, 0;
        -inf nan: nan, ~inf; inf nan: inf, nan; nan finite: nan, nan; nan nan: nan, nan""",
    "tanh": """0 0: 0, 0; nonzero inf: nan, nan; 0 inf: 0, nan; nonzero nan: nan, nan; 0 nan: 0, nan;
        inf positive: 1, ~0;
        inf inf: 1, ~0; inf nan: 1, ~0; nan 0: nan, 0; nan nonzero: nan, nan; nan nan: nan, nan""",
}

FORGONE = {
    "floor_divide": """inf positive: inf; inf negative: -inf; -inf positive: -inf; -inf negative: inf;
        positive -inf: -0; negative inf: -0""",
    "sqrt": "-inf positive: nan, nan; inf positive: 0, inf",
}

# f(z) is that of iz, times -i for all but cos.
AS_IF = {"asin": "asinh", "atan": "atanh", "sin": "sinh", "tan": "tanh", "cos": "cosh"}
CONJUGATE = "acos acosh asin asinh atan atanh cos cosh exp expm1 log log10 log1p log2 sin sinh sqrt tan tanh".split()
ODD_FUNCTIONS, EVEN_FUNCTIONS = "asin asinh atan atanh sin sinh tan tanh".split(), ["cos", "cosh"]


def rows(text: str) -> list[tuple[list[str], list[str]]]:
    """Split a text of rows into operands and parts of the result."""
    split = (row.split(":") for row in text.replace("\n", " ").split(";"))
    return [(operands.split(), [part.strip() for part in result.split(",")]) for operands, result in split]


def fits(word: str, value: float) -> bool:
    """Whether a value is the number, or of the kind, that a word names."""
    if word in KINDS:
        return bool(KINDS[word](value))
    wanted = float(word)
    return same(value, wanted)


def expected(part: str, x: float, y: float) -> float:
    """The value of a part of a result, without its mark of an open sign."""
    names = {"nan": np.nan, "inf": np.inf, "pi": np.pi, "np": np, "x": x, "y": y}
    return -0.0 if part == "-0" else float(eval(part.removeprefix("~"), names))


def same(found: float, wanted: float, open_sign: bool = False, rtol: float = 0.0) -> bool:
    """Whether two numbers are equal to a few digits, and their signs (of zeros, too) unless these are open."""
    if np.isnan(wanted):
        return bool(np.isnan(found))
    if open_sign:
        found, wanted = abs(found), abs(wanted)
    return bool(np.isclose(found, wanted, rtol=rtol, atol=0.0) and np.signbit(found) == np.signbit(wanted))

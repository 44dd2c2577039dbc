"""What a run of the fuzzer is about: the families that it draws from, by weight, dtypes, sizes and depths."""

from tests.fuzzing.builder import Profile
from tests.fuzzing.families import KINKS, MODULES, ROUNDED, SPECIAL
from tests.fuzzing.program import Program, walk

_ALL = {name: 1.0 for module in MODULES.values() for name in module}
_LOOPS = dict.fromkeys(MODULES["loops"], 1.0)
_NESTED = _LOOPS | {"scan": 4.0, "fori": 4.0, "while": 0.3, "mapped": 2.0}
_INSIDE = {
    "unary": 1.0,
    "binary": 3.0,
    "element": 3.0,
    "window": 2.0,
    "dynamic": 3.0,
    "static": 1.0,
    "masks": 0.5,
    "one_hots": 0.5,
}

_OFTEN = ("mapped", "products", "reductions", "windows", "cumulative", "binary", "unary")


def nests(program: Program) -> bool:
    """Whether there is a loop in a loop."""
    outer = (s for s in walk(program.statements) if s.feature.startswith(LOOPS))
    return any(s.feature.startswith(LOOPS) for o in outer for block in o.blocks for s in walk(block.statements))


LOOPS = ("lax.scan", "lax.fori_loop", "lax.while_loop", "lax.map")
PROFILES: dict[str, Profile] = {
    p.name: p
    for p in (
        Profile("all", _ALL),
        # large arrays: what is computed for every row, reduced, windowed and read, in few statements
        Profile(
            "sizes",
            _ALL | dict.fromkeys(_OFTEN, 4.0),
            floats=("float64", "float32"),
            sizes=(1, 2, 3, 3, 4, 5),
            large=1.0,
        ),
        Profile(
            "nested",
            _NESTED | _INSIDE,
            sizes=(2, 3, 4),
            depth=3,
            statements=(1, 2),
            body=(1, 3),
            arguments=2,
            accepts=nests,
        ),
        Profile("narrow", _ALL, floats=("float32", "float32", "bfloat16", "float16")),
        Profile("empty", _ALL, sizes=(0, 0, 1, 2)),
        # at zeros, ties, infinities and nan
        Profile("special", dict.fromkeys(SPECIAL, 1.0), sizes=(1, 2, 3, 5, 8), special=True),
        # second derivatives of smooth functions, at zeros and ties, where functions in them have kinks
        Profile("kinks", dict.fromkeys(KINKS, 0.3) | {"squared": 3.0}, sizes=(1, 2, 3), statements=(1, 3), kinks=True),
        # compiled, and one by one, every operation is rounded to its dtype
        Profile(
            "rounded",
            dict.fromkeys(ROUNDED, 1.0) | dict.fromkeys(("narrowed", "narrow_unary", "narrow_binary"), 4.0),
            floats=("bfloat16", "bfloat16", "float16", "float16", "float8_e4m3fn", "float8_e5m2", "float32"),
            sizes=(1, 2, 3, 5, 8),
            statements=(3, 8),
            rounded=True,
            bits=32,
        ),
        Profile("integers", {"grown": 1.0, "tested": 2.0, "wrapped": 1.0}, statements=(3, 8)),  # which wrap
        # as users begin: Python's numbers have 32 bits
        Profile("default", _ALL, floats=("float32",), bits=32),
        # one or two kernels, which read an array several times: lengths on both sides of what LLVM vectorizes by
        Profile(
            "rotations",
            dict.fromkeys(MODULES["stencils"], 1.0) | {"binary": 0.3},
            sizes=(3, 5, 6, 7, 11, 12, 20, 39),
            statements=(1, 2),
            arguments=1,
        ),
        # one module of families more often than the rest
        *(Profile(name, dict.fromkeys(_ALL, 0.4) | dict.fromkeys(module, 4.0)) for name, module in MODULES.items()),
    )
}

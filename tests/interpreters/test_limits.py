"""Limits: each says what it counts and what is lost beyond it, there are no others, and who listens hears of them."""

import ast
from pathlib import Path

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import interpreters
from tapeless.interpreters import limits
from tapeless.interpreters.simplify import simplify_program
from tapeless.tracer.terms import term_limits as limits_of_terms
from tapeless.tracer.terms.term_limits import Limit, collect_stops

X = tnp.linspace(0.1, 1.0, 32)
# Names of numbers that end no search: marks of what is unknown, ranges of dtypes, sizes of blocks, coefficients.
NO_LIMITS = {"RANGE", "NEW", "_UNBOUNDED", "_LARGEST", "_BLOCK", "_SLOPE", "_VALUES"}


def test_every_limit_says_what_it_counts_and_what_is_lost():
    for module in (limits, limits_of_terms):
        for name, x in vars(module).items():
            assert not isinstance(x, Limit) or (x.name == name and x.counts and x.lost), name


def test_numbers_stand_in_limits_alone():
    """No other module of the transformations has a number in capital letters."""
    root = Path(next(iter(interpreters.__path__)))
    found = [f"{path.relative_to(root)}:{node.lineno}" for path in root.rglob("*.py") for node in _numbers(path)]
    assert len(list(root.rglob("*.py"))) > 100
    assert found == []


def _numbers(path):
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and any(isinstance(x, ast.Constant) for x in ast.walk(node.value)):
            names = [x.id for target in node.targets for x in ast.walk(target) if isinstance(x, ast.Name)]
            parts = ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.operator, ast.unaryop, ast.Load
            is_number = all(isinstance(x, parts) for x in ast.walk(node.value)) and not isinstance(
                getattr(node.value, "value", 0), str | bool
            )
            if is_number and any(name.isupper() and name not in NO_LIMITS for name in names):
                yield node


def read_by(n):
    def f(x):
        y = tnp.outer(tnp.sin(x), x)
        return sum(y @ tnp.cos(k * x) for k in range(n))

    return f


def parts_of(n):
    def f(x):
        y = tnp.sin(x)
        return tuple([y[4 * k : 4 * k + 1] for k in range(n)])

    return f


def test_who_listens_hears_of_what_was_stopped():
    for f, limit in ((read_by, limits.READERS), (parts_of, limits.PARTS)):
        for n, is_stopped in ((int(limit), False), (limit + 1, True)):
            program = tl.make_jaxpr(f(n))(X).jaxpr
            with collect_stops() as stopped:
                simplify_program(program)
            assert (limit in [stop.limit for stop in stopped]) == is_stopped, (limit.name, n)


def test_explanations_name_limits():
    stopped = tl.explain(lambda x: tnp.sum(read_by(6)(x)), X).limits
    assert "READERS = 4 values that read one value, at " in str(stopped) and "test_limits.py" in str(stopped)
    assert str(tl.explain(lambda x: tnp.sum(tnp.sin(x)), X).limits) == "no limit stopped anything"

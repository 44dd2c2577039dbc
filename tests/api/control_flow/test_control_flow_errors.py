"""What is said of branches and loops that do not fit: whole messages, every leaf that differs."""

import functools

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless import lax
from tests.messages import NO_CHILD, place, raises

X = np.arange(6, dtype=np.float32).reshape(3, 2)

# ---- carries -----------------------------------------------------------------------------------------

CONVERT = "Convert what the body returns (astype, reshape), or begin with the type that it gives."
SAME = "all branches must return the same, whichever is taken."
ONE_TYPE = f"Convert them (astype, broadcast_to): {SAME}"
ONE_STRUCTURE = f"Return one structure, with zeros for what a branch lacks: {SAME}"


def narrowing(carry, x):
    return {"h": tnp.append(carry["h"], 1.0), "n": carry["n"] * 1.5, "ok": carry["ok"]}, None


def narrow(c):
    return narrowing(c, None)[0]


def narrow_at(i, c):
    return narrow(c)


def test_carries_that_change_their_types():
    init = {"h": np.ones(3, np.float32), "n": tnp.int32(1), "ok": 0.0}
    loops = {
        "scan": (narrowing, lambda: lax.scan(narrowing, init, length=2)),
        "while_loop": (narrow, lambda: lax.while_loop(lambda c: True, narrow, init)),
        "fori_loop": (narrow_at, lambda: lax.fori_loop(0, 3, narrow_at, init)),
    }
    for who, (body, run) in loops.items():
        with raises(
            TypeError,
            f"{who}: {place(body)} changes the type of the carry.\n"
            "  carry['h'] comes in as float32[3], goes out as float32[4].\n"
            "  carry['n'] comes in as int32[], goes out as float32[].\n"
            f"  {CONVERT}",
        ):
            run()


def growing(c, x):
    return c + x, None


def test_scan_of_one_array_that_changes_its_type():
    message = (
        f"scan: {place(growing)} changes the type of the carry.\n"
        f"  carry comes in as float32[], goes out as float32[2].\n  {CONVERT}"
    )
    with raises(TypeError, message):
        lax.scan(growing, 0.0, X)
    with raises(TypeError, message):
        tl.jit(lambda xs: lax.scan(growing, 0.0, xs))(X)


def other_structure(carry, x):
    return {"a": (carry["a"][0],), "b": [1, 2], "c": None}, x


def test_scan_that_changes_the_structure():
    init = {"a": (1.0, 2.0), "b": [1, 2], "c": X}
    with raises(
        TypeError,
        f"scan: {place(other_structure)} changes the structure of the carry.\n"
        "  carry['a'] comes in as a tuple of 2, goes out as a tuple of 1.\n"
        "  carry['c'] comes in as float32[3,2], goes out as None.\n"
        "  Return a carry of the structure that the initial one has.",
    ):
        lax.scan(other_structure, init, length=1)
    with raises(
        TypeError,
        f"scan: {place(keyed)} changes the structure of the carry.\n"
        "  carry['b'] comes in as int32[], goes out as nothing.\n"
        "  Return a carry of the structure that the initial one has.",
    ):
        lax.scan(keyed, {"a": 1, "b": 2}, length=1)


def test_branches_that_take_other_arguments():
    two = "is called with 1 argument, the operands, but takes (carry, x)."
    with raises(TypeError, f"cond: false_fun, {place(keyed)}, {two}"):
        lax.cond(np.bool_(True), lambda x: x, keyed, 1.0)
    with raises(TypeError, f"switch: branch 0, {place(keyed)}, {two}"):
        lax.switch(tnp.ones((), int), [keyed, lambda x: x], 1.0)
    assert lax.cond(tnp.ones((), bool), tnp.sin, lambda *xs, scale=2.0: scale * xs[0], 0.0) == 0.0


def test_a_wrapper_takes_its_own_arguments():
    """What `functools.wraps` copies is the name of the function inside, not what the wrapper takes."""

    def of_pair(f):
        @functools.wraps(f)
        def wrapper(pair):
            return f(*pair)

        return wrapper

    pair = (tnp.float32(1), tnp.float32(2))
    assert lax.cond(True, of_pair(tnp.add), of_pair(lambda x, y: x - y), pair) == 3
    assert lax.switch(1, [of_pair(tnp.add), of_pair(lambda x, y: x - y)], pair) == -1


def keyed(carry, x):
    return {"a": carry["a"]}, x


def three(carry, x):
    return carry, x, x


def text(carry, x):
    return carry, {"label": "x"}


def test_scan_of_a_wrong_function():
    with raises(TypeError, f"scan: {place(three)} must return a pair (carry, y), but returned a tuple of 3."):
        lax.scan(three, 0.0, X)
    for returned, shown in ((X, "one array, float32[3,2]"), (1.0, "one array, float32[]"), ("x", "'x' of type str")):

        def alone(carry, x, returned=returned):
            return returned

        with raises(TypeError, f"scan: {place(alone)} must return a pair (carry, y), but returned {shown}."):
            lax.scan(alone, 0.0, X)
    label = "[1]['label']"
    with raises(TypeError, f"scan: the result{label} of {place(text)} is 'x' of type str, which is not an array."):
        lax.scan(text, 0.0, X)
    with raises(TypeError, "scan: f must be a function, not 3."):
        lax.scan(3, 0.0, X)
    with raises(TypeError, "scan: init['a'] is 'x' of type str, which is not an array." + NO_CHILD):
        lax.scan(growing, {"a": "x"}, X)


# ---- sequences ---------------------------------------------------------------------------------------


def test_leading_axes():
    with raises(
        ValueError,
        "scan: leading axes differ in size. xs['a'] has 3 (float32[3,2]), xs['b'][0] has 4 (float32[4]).",
    ):
        lax.scan(growing, 0.0, {"a": X, "b": [np.ones(4, np.float32)]})
    with raises(ValueError, "scan: leading axes differ in size. length is 5, xs has 3 (float32[3,2])."):
        lax.scan(growing, 0.0, X, length=5)
    with raises(ValueError, "map: xs[0] is float32[], which has no leading axis to go along."):
        lax.map(lambda x: x, (1.0, X))
    with raises(ValueError, "scan: length must not be negative, but is -1."):
        lax.scan(lambda c, _: (c, c), 1.0, None, length=-1)
    with raises(ValueError, "scan: xs has no arrays, so length must be given."):
        lax.scan(growing, 0.0)
    with raises(TypeError, "scan: length must be an integer, not 2.5."):
        lax.scan(growing, 0.0, length=2.5)
    with raises(ValueError, "scan: unroll must be True, False or a number of steps, not -1."):
        lax.scan(growing, 0.0, X, unroll=-1)
    with raises(ValueError, "map: batch_size must be a number of elements, not -2."):
        lax.map(lambda x: x, X, batch_size=-2)
    with raises(TypeError, "scan: xs[1] is 'ab' of type str, which is not an array." + NO_CHILD):
        lax.scan(growing, 0.0, (X, "ab"))


def test_length_that_is_traced():
    with pytest.raises(tl.errors.TracerIntegerConversionError):
        tl.jit(lambda n: lax.scan(growing, 0.0, length=n))(3)


def shortened(a, b):
    return a[:1]


def test_associative_scan_errors():
    with raises(ValueError, "associative_scan: elems has no arrays."):
        lax.associative_scan(tnp.add, ())
    with raises(
        ValueError,
        "associative_scan: elements differ in number. elems['a'] has 3 (float32[3,2], axis 0), "
        "elems['b'] has 4 (float32[4], axis 0).",
    ):
        lax.associative_scan(tnp.add, {"a": X, "b": np.ones(4, np.float32)})
    with raises(
        TypeError,
        f"associative_scan: {place(shortened)} must return what it is given, (float32[2]), but returned (float32[1]).",
    ):
        lax.associative_scan(shortened, np.ones(4, np.float32))
    with raises(tl.errors.AxisError, "associative_scan: axis 2 is out of range for an array of 2 axes."):
        lax.associative_scan(tnp.add, X, axis=2)


# ---- branches ----------------------------------------------------------------------------------------


def one(x):
    return {"a": x, "b": (x[0], 1)}


def two(x):
    return {"a": x[:2], "b": (x[0], 2.0)}


def other(x):
    return {"a": x, "b": [x[0], 1]}


def test_branches_that_return_different_types():
    x = np.ones(3, np.float32)
    with raises(
        TypeError,
        f"cond: the branches return different types: true_fun is {place(one)}, false_fun is {place(two)}.\n"
        "  result['a'] is float32[3] from true_fun, float32[2] from false_fun.\n"
        f"  result['b'][1] is int32[] from true_fun, float32[] from false_fun.\n  {ONE_TYPE}",
    ):
        lax.cond(True, one, two, x)
    with raises(
        TypeError,
        "switch: the branches return different types: "
        f"branch 0 is {place(one)}, branch 1 is {place(two)}, branch 2 is {place(one)}.\n"
        "  result['a'] is float32[3] from branch 0 and branch 2, float32[2] from branch 1.\n"
        f"  result['b'][1] is int32[] from branch 0 and branch 2, float32[] from branch 1.\n  {ONE_TYPE}",
    ):
        lax.switch(0, [one, two, one], x)


def test_branches_that_return_different_structures():
    x = np.ones(3, np.float32)
    with raises(
        TypeError,
        f"cond: the branches return different structures: true_fun is {place(one)}, false_fun is {place(other)}.\n"
        f"  result['b'] is a tuple of 2 from true_fun, a list of 2 from false_fun.\n  {ONE_STRUCTURE}",
    ):
        lax.cond(True, one, other, x)
    with raises(
        TypeError,
        "switch: the branches return different structures: "
        f"branch 0 is {place(one)}, branch 1 is {place(one)}, branch 2 is {place(nothing)}.\n"
        f"  result is a dict with 'a', 'b' from branch 0, None from branch 2.\n  {ONE_STRUCTURE}",
    ):
        lax.switch(0, [one, one, nothing], x)


def nothing(x):
    return None


def test_predicates_and_indices():
    choice = "\n  Use tnp.where or lax.select_n to choose for each element."
    with raises(TypeError, f"cond: the predicate must be a scalar, not bool[3,2].{choice}"):
        lax.cond(X > 2, one, two, X)
    with raises(TypeError, "cond: the predicate must be a boolean or a number, not None of type NoneType."):
        lax.cond(None, one, two, X)
    with raises(TypeError, "cond: the predicate must be a boolean or a number, not [True] of type list."):
        lax.cond([True], one, two, X)
    with raises(TypeError, "cond: the predicate must be a boolean or a real number, not complex64[]."):
        lax.cond(1j, one, two, X)
    with raises(TypeError, "cond: true_fun must be a function, not an array float32[3,2]."):
        lax.cond(True, X, X)
    with raises(TypeError, "cond: true_fun must be a function, not 1."):
        lax.cond(True, 1, two, X)
    with raises(TypeError, "cond: operand args[0]['k'] is 'x' of type str, which is not an array." + NO_CHILD):
        lax.cond(True, one, two, X, {"k": "x"})
    with raises(TypeError, "cond: operand= is the only operand, but 1 more were given by position."):
        lax.cond(True, one, two, X, operand=X)
    with raises(TypeError, "switch: the index must be an integer, not float32[]."):
        lax.switch(1.0, [one, two], X)
    with raises(TypeError, f"switch: the index must be a scalar, not int32[2].{choice}"):
        lax.switch(np.array([0, 1], np.int32), [one, two], X)
    with raises(TypeError, "switch: branches must be a sequence of functions, not <built-in function abs>."):
        lax.switch(0, abs, 1.0)
    with raises(ValueError, "switch: there are no branches to choose from."):
        lax.switch(0, [], X)
    with raises(TypeError, "switch: branch 1 must be a function, not None."):
        lax.switch(0, [one, None], X)


# ---- conditions and bounds ---------------------------------------------------------------------------


def per_element(x):
    return x > 0


def both(x):
    return True, x


def test_conditions():
    returned = "must return a boolean scalar, but returned bool[3,2]. Reduce it with any() or all()."
    with raises(TypeError, f"while_loop: {place(per_element)} {returned}"):
        lax.while_loop(per_element, lambda x: x, X)
    with raises(TypeError, f"while_loop: {place(both)} must return a boolean scalar, but returned a tuple of 2."):
        lax.while_loop(both, lambda x: x, X)
    with raises(TypeError, f"while_loop: {place(one_minus)} must return a boolean scalar, but returned float32[]."):
        lax.while_loop(one_minus, lambda x: x, 1.0)


def one_minus(x):
    return 1 - x


def test_bounds():
    with raises(TypeError, "fori_loop: lower must be an integer, not float32[]."):
        lax.fori_loop(0.0, 3, lambda i, x: x, 0)
    with raises(ValueError, "fori_loop: upper must be a whole number, not 2.5."):
        lax.fori_loop(0.0, 2.5, lambda i, x: x, 0)
    with raises(TypeError, "fori_loop: upper must be a scalar, not int32[2]."):
        lax.fori_loop(0, np.zeros(2, np.int32), lambda i, x: x, 0)
    with raises(TypeError, "fori_loop: upper must be an integer, not None of type NoneType."):
        lax.fori_loop(0, None, lambda i, x: x, 0)
    with raises(TypeError, "fori_loop: lower is int32[], but upper is int64[]: convert one of them."):
        lax.fori_loop(tnp.int32(0), tnp.int64(3), lambda i, x: x, 0)
    with raises(ValueError, "fori_loop: unroll=2 needs bounds that are known, but upper is traced."):
        tl.jit(lambda n: lax.fori_loop(0, n, lambda i, x: x, 0, unroll=2))(3)


def choosing(c, x):
    return (c if x > 0 else -c), None


def test_an_if_in_a_body_names_the_body():
    here = place(choosing, "if x > 0")
    with raises(
        tl.errors.TracerBoolConversionError,
        f"the truth value of a traced array is not known: bool[], asked for at {here}.\n"
        f"  Traced: {place(choosing)}, traced for scan.\n  It was computed at {here}.\n"
        "  Use tnp.where or lax.cond for a choice, lax.while_loop for a loop, or close over the value where it is "
        "known.",
    ):
        lax.scan(choosing, 0.0, X[:, 0])


kept = []


def keeping(c, x):
    kept.append(c)
    return c, None


def test_a_tracer_that_leaves_the_body():
    lax.scan(keeping, tnp.ones(2), X)
    with pytest.raises(
        tl.errors.UnexpectedTracerError, match=r"a traced array escaped its function: float32\[2\] of keeping"
    ):
        kept.pop() + 1

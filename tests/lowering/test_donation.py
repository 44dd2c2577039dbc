"""Donated inputs: which results take their memory, in the module and when it runs, and the warning where none can."""

import warnings

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.lowering.donation import match_donated
from tapeless.tracer.types import aval_of
from tests.messages import raises

X, SMALL, INTEGERS = np.ones(6, np.float32), np.ones(3, np.float32), np.ones(6, np.int32)
# A function, arguments, those donated; for each the result that takes its memory, None where XLA chooses it; unused.
CASES = {
    "equal types": (lambda x: x + 1, (X,), (0,), {0: 0}, []),
    "beside a result of as many bytes": (lambda x: (tnp.int32(0), x + 1), (X[0],), (0,), {0: 1}, []),
    "in the order of the results": (lambda x, y, z: (y, z, x), (X, SMALL, INTEGERS), (0, 1, 2), {1: 0, 2: 1, 0: 2}, []),
    "the first of equal ones": (lambda x, y: x + y, (X, X), (0, 1), {0: 0}, [1]),
    "only donated ones": (lambda x, y: x + y, (X, X), (1,), {1: 0}, []),
    "another shape": (lambda x: x.reshape(2, 3) * 2, (X,), (0,), {0: None}, []),
    "another dtype": (lambda x, n: (x, n + x.astype(int)), (X, INTEGERS), (0, 1), {0: 0, 1: 1}, []),
    "bytes of another dtype": (lambda x: x.astype(tnp.int32), (X,), (0,), {0: None}, []),
    "a smaller result": (lambda x: x.sum(), (X,), (0,), {}, [0]),
    "fewer bytes": (lambda x: x > 0, (X,), (0,), {}, [0]),
    "not read": (lambda x, y: 2 * y, (X, SMALL), (0, 1), {1: 0}, [0]),
    "itself": (lambda x: x, (X,), (0,), {0: 0}, []),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:Some donated buffers")
def test_who_takes_whose_memory(case: str):
    f, args, donated, taken, unused = CASES[case]
    args = [tnp.array(x) for x in args]
    jitted = tl.jit(f, donate_argnums=donated)
    program = tl.make_jaxpr(f)(*args).jaxpr
    assert match_donated(program.in_avals, program.out_avals, donated) == (taken, unused)
    compiled = jitted.lower(*args).compile()
    assert compiled.memory_analysis().alias_size_in_bytes == sum(args[i].nbytes for i in taken)
    memory = [x.unsafe_buffer_pointer() for x in args]
    expected = [np.array(y) for y in tl.tree.leaves(f(*args))]
    results = tl.tree.leaves(jitted(*args))
    for y, want in zip(results, expected, strict=True):
        np.testing.assert_array_equal(y, want)
    for i, k in taken.items():
        assert k is None or results[k].unsafe_buffer_pointer() == memory[i]
    assert [x.is_deleted() for x in args] == [i in taken for i in range(len(args))]


def test_keys_are_words():
    keys = tl.random.split(tl.random.key(0), 3)
    words = tl.random.key_data(keys)
    assert match_donated([aval_of(keys)], [aval_of(words)], [0]) == ({0: 0}, [])


def warnings_of(run, times=2):
    """The warnings of several calls, which are all at this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(times):
            run()
    assert {warning.filename for warning in caught} <= {__file__}
    return [str(warning.message) for warning in caught]


def step(state, y, z=None):
    return state["a"] + tnp.sum(y)


ADVICE = "  They are not reused, and stay. Donate arguments that a result can take the place of."


@pytest.mark.parametrize(
    ("args", "named", "reasons"),
    [
        (({"a": tnp.ones(3), "b": tnp.ones(2)}, tnp.ones(6)), "state['b']: float32[2], y: float32[6]", [0]),
        (({"a": tnp.ones(3)}, tnp.ones(3, "float16")), "y: float16[3]", [0]),  # another dtype
        (({"a": tnp.ones((1, 3))}, tnp.ones((2, 3))), "y: float32[2,3]", [0]),  # another shape
        (({"a": tnp.ones(3)}, tnp.ones(3)), "y: float32[3]", [1]),  # used for an argument before it
        (({"a": tnp.ones(3)}, tnp.ones(3), tnp.ones(4)), "y: float32[3], z: float32[4]", [0, 1]),
    ],
)
def test_a_warning_names_arguments_and_reasons_once_for_a_compilation(args, named, reasons):
    jitted = tl.jit(step, donate_argnums=(0, 1, 2))
    (found,) = warnings_of(lambda: jitted(*tl.tree.map(tnp.copy, args)))
    start, *why, advice = found.splitlines()
    leaves = [part.partition(":")[0] for part in named.split(", ")]
    size = leaves if reasons == [0] else leaves[1:]
    texts = [
        f"has as many bytes as {', '.join(size)}.",
        f"with as many bytes as {leaves[0]} take other donated memory.",
    ]
    assert start == f"Some donated buffers were not usable: {named}." and advice == ADVICE
    assert len(why) == len(reasons) and all(line.endswith(texts[k]) for line, k in zip(why, reasons))


@pytest.mark.parametrize("f", [lambda x: x + 1, lambda x: (2 * x).reshape(2, 3)])
@pytest.mark.parametrize("lend", [np.asarray, np.from_dlpack])
def test_memory_that_is_lent_is_not_taken(f, lend):
    x, jitted = tnp.ones(6), tl.jit(f, donate_argnums=0)
    view, saved = lend(x), jitted.lower(x).compile()
    for run in (jitted, saved, tl.stages.load(saved.serialize())):
        found = warnings_of(lambda run=run: run(x), 4)  # more than it takes until calls are known
        assert len(found) == 4
        for text in found:
            start, reason, _ = text.splitlines()
            assert start.startswith("Some donated buffers were not usable: argument x of ")
            assert start.endswith(": float32[6].") and "lent to a NumPy array" in reason
    assert not x.is_deleted() and (view == 1).all()
    del view
    assert not warnings_of(lambda: jitted(x), 1) and x.is_deleted()


def updates(params, x):
    def loss(params):
        y = x
        for layer in params:
            y = tnp.tanh(y @ layer["w"] + layer["b"])
        return tnp.sum(y**2)

    value, gradient = tl.value_and_grad(loss)(params)
    return tl.tree.map(lambda p, g: p - 0.1 * g, params, gradient), value


def updates_by_adam(state, x):
    params, moments = state
    gradient = tl.tree.map(lambda p, new: p - new, params, updates(params, x)[0])
    change, moments = ADAM.update(gradient, moments, params)
    return tl.optimizers.apply_updates(params, change), moments


ADAM = tl.optimizers.adam(0.1)
PARAMS = [{"w": tnp.ones((128, 128), "float32"), "b": tnp.ones(128, "float32")} for _ in range(8)]


@pytest.mark.parametrize("step, state", [(updates, PARAMS), (updates_by_adam, (PARAMS, ADAM.init(PARAMS)))])
def test_a_training_step_holds_one_copy_of_what_it_updates(step, state):
    x = tl.ShapeDtypeStruct((4, 128), "float32")
    copy = sum(p.nbytes for p in tl.tree.leaves(state))
    donated, kept = (
        tl.jit(step, donate_argnums=d).lower(state, x).compile().memory_analysis().total_size_in_bytes for d in (0, ())
    )
    # A gradient is computed beside the parameter that the backward pass still reads: those of two layers at most.
    # Activations are 16 kB, and inputs, biases and the table of results less.
    most = copy + 2 * PARAMS[0]["w"].nbytes + 32_768
    assert copy < donated < most < 1.35 * copy
    assert kept > 2 * copy


def test_device_put():
    message = "device_put: may_alias=True lets the result be `x` itself, and donate=True gives up its memory."
    with raises(ValueError, f"{message}\n  Leave out one of them."):
        tl.device_put(X, may_alias=True, donate=True)
    tl.device_put(tnp.ones(3), may_alias=False, donate=True)

"""Tracebacks as they are printed: without our frames, ending at the user's line."""

import importlib
import subprocess
import sys
import traceback

import numpy as np
import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.host import tracebacks
from tapeless.tracer.errors import InternalError

PROGRAM = """
import numpy as np, tapeless as tl, tapeless.numpy as tnp
{setting}
def loss(w, x):
    return tnp.sum(x @ w)
def train():
    return tl.jit(tl.grad(loss))(np.ones(3), np.ones((2, 4)))
train()
"""


def printed(setting=""):
    """What Python prints of an error that nobody caught."""
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(setting=setting)], capture_output=True, text=True)
    assert done.returncode == 1
    return done.stderr


def test_what_python_prints():
    text = printed()
    assert text.count("File ") == 3  # the module, train, loss
    assert '", line 5, in loss\n' in text
    line = ", return tnp.sum(x @ w)" * (sys.version_info >= (3, 13))  # which keeps the text of `python -c`
    assert text.endswith(
        "\nTypeError: @: contracted axes differ in size: axis 1 of float64[2,4] has 4, axis 0 of float64[3] has 3."
        f"\n  At <string>:5 (loss){line}\n"
        "(Frames of tapeless are left out. tapeless.config.traceback_filtering = 'off' shows them.)\n"
    )
    assert printed("tl.config.traceback_filtering = 'off'").count("File ") > 10
    assert "Frames of" not in printed("tl.config.traceback_filtering = 'quiet_remove_frames'")


def wrong(x):
    return tnp.ones(3) + x


def frames(error):
    return [frame.name for frame in traceback.extract_tb(tracebacks.filtered(error, error.__traceback__))]


RUNS = {
    "eager": wrong,
    "jit": tl.jit(wrong),
    "grad of jit": tl.grad(lambda x: tnp.sum(tl.jit(wrong)(x))),
    "vmap": lambda x: tl.vmap(tl.jit(wrong))(tnp.stack([x, x])),
    "vjp": lambda x: tl.vjp(wrong, x),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_traceback_ends_at_the_users_line(name):
    with pytest.raises(ValueError, match=r"shapes \(3,\) and \(7,\) do not broadcast") as caught:
        RUNS[name](np.ones(7))
    assert str(caught.value).endswith("(wrong), return tnp.ones(3) + x")
    assert frames(caught.value)[-1] == "wrong"
    assert str(caught.value).count("\n  At ") == 1


def test_errors_of_the_users_own_are_left_alone():
    def fails(x):
        raise ValueError("mine")

    with pytest.raises(ValueError) as caught:
        tl.jit(fails)(1.0)
    assert str(caught.value) == "mine"
    assert frames(caught.value)[-1] == "fails"


def test_tracebacks_without_frames_of_ours_are_left_alone():
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module("no.such.module")
    assert tracebacks.filtered(caught.value, caught.value.__traceback__) is caught.value.__traceback__
    assert not hasattr(caught.value, "__notes__")


def test_causes_are_filtered_too():
    def fails(x):
        try:
            tl.jit(wrong)(np.ones(7))
        except ValueError as error:
            raise RuntimeError("outer") from error

    with pytest.raises(RuntimeError) as caught:
        tl.jit(fails)(1.0)
    tracebacks.filtered(caught.value, caught.value.__traceback__)
    cause = caught.value.__cause__
    assert [frame.name for frame in traceback.extract_tb(cause.__traceback__)] == ["fails", "wrong"]


def test_causes_are_filtered_where_the_error_itself_passed_none_of_our_frames():
    with pytest.raises(RuntimeError) as caught:
        try:
            tl.jit(wrong)(np.ones(7))
        except ValueError as error:
            raise RuntimeError("outer") from error
    assert len(frames(caught.value)) == 1 and len(caught.value.__notes__) == 1
    assert [frame.name for frame in traceback.extract_tb(caught.value.__cause__.__traceback__)][1:] == ["wrong"]


def leaked():
    kept = []
    tl.jit(lambda x: kept.append(x) or x)(1)
    return kept[0]


MISTAKES = {
    "a leak, and a number": lambda: leaked() + 1,
    "a leak, and NumPy's number": lambda: np.float32(1) + leaked(),
    "a leak as an index": lambda: tnp.ones(3).at[leaked()].set(0.0),
    "keys and numbers": lambda: tl.random.key(0) + 1,
    "a slice by an index": lambda: tl.index.build((3,), lambda i: tnp.ones(3)[i : i + 2]),
    "a single boolean and too many indices": lambda: tnp.ones(3)[True, 0, 0],
    "a window and too many indices": lambda: tnp.ones(3)[tl.ds(0, 2), 0],
    "a deep tree": lambda: tl.tree.flatten(deep(5000), is_leaf=lambda x: 1 // len(x) > 1),
}


def deep(n):
    tree = []
    for _ in range(n):
        tree = [tree]
    return tree


@pytest.mark.parametrize("name", MISTAKES)
def test_errors_follow_no_errors_of_ours(name):
    """What Python would print first, "During handling of the above exception", is how we came to look."""
    with pytest.raises(Exception) as caught:
        MISTAKES[name]()
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_errors_that_numpy_gives_for_ours_keep_them_as_their_cause():
    """Outside of traced functions, where nobody can raise ours in their place."""
    leaked = []
    tl.jit(leaked.append)(1.0)
    with pytest.raises(ValueError, match="setting an array element") as caught:
        np.zeros(4)[0] = leaked[0]
    cause = caught.value.__cause__
    assert cause is not None and cause.__traceback__ is not None
    tracebacks.filtered(caught.value, caught.value.__traceback__)
    assert caught.value.__cause__ is cause
    with pytest.raises(tl.errors.UnexpectedTracerError):
        tl.jit(lambda x: np.zeros(4).__setitem__(0, leaked[0]))(1.0)


def test_bugs_of_ours_are_shown_whole():
    def fails():
        raise InternalError("broken")

    with pytest.raises(InternalError) as caught:
        tl.tree.map(lambda _: fails(), 1)
    whole = len(traceback.extract_tb(caught.value.__traceback__))
    assert len(frames(caught.value)) == whole


SHELL = "from IPython.core.interactiveshell import InteractiveShell as S; s = S.instance(); "
FAILS = "import tapeless as tl, tapeless.numpy as tnp\ntl.jit(lambda x: tnp.ones(3) + x)(tnp.ones(7))\n"
CHAINED = (
    "import tapeless as tl, tapeless.numpy as tnp\n"
    "try:\n    tl.jit(lambda x: tnp.ones(3) + x)(tnp.ones(7))\n"
    "except ValueError as error:\n    raise RuntimeError('outer') from error\n"
)


def printed_by_ipython(code):
    pytest.importorskip("IPython")
    done = subprocess.run([sys.executable, "-c", SHELL + code], capture_output=True, text=True)
    assert "do not broadcast" in done.stdout
    return done.stdout


@pytest.mark.parametrize("code, mode", [(FAILS, "Context"), (FAILS, "Plain"), (CHAINED, "Context")])
def test_ipython_prints_no_frames_of_ours(code, mode, tmp_path):
    """Neither of a cell, nor of a script."""
    script = tmp_path / "script.py"
    script.write_text(code)
    for run in (f"s.run_cell({code!r})", f"s.run_line_magic('run', {str(script)!r})"):
        text = printed_by_ipython(f"s.run_cell('import tapeless'); s.run_line_magic('xmode', {mode!r}); {run}")
        assert "tapeless/" not in text and "/api/" not in text and "/tracer/" not in text
        assert "Frames of tapeless are left out" in text or mode == "Plain"  # which prints no notes
        assert "interactiveshell.py" not in text  # IPython's own frames are left out by it


def test_ipython_prints_no_frames_of_ours_where_a_script_imports_us_first(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(FAILS)
    text = printed_by_ipython(f"s.safe_execfile({str(script)!r}, {{}})")
    assert "/api/" not in text and "/tracer/" not in text


KEYWORDS = {
    "tnp.sum(x, dim=1)": "Write axis= in the place of PyTorch's dim=.",
    "x.mean(0, keepdim=True)": "Write keepdims= in the place of PyTorch's keepdim=.",
    "tl.nn.softmax(x, dim=-1)": "Write axis= in the place of PyTorch's dim=.",
    "tnp.concatenate([x, x], dim=1)": "Write axis= in the place of PyTorch's dim=.",
    "tl.optimizers.adam(lr=1e-3)": "Write learning_rate= in the place of PyTorch's lr=.",
    "tl.vmap(tnp.sin, in_dims=0)": "Write in_axes= in the place of PyTorch's in_dims=.",
    "tl.nn.relu(x, inplace=True)": "In the place of PyTorch's inplace= write nothing: arrays never change.",
    "tnp.var(x, unbiased=False)": (
        "In the place of PyTorch's unbiased= write ddof=1 for unbiased=True; here the default is ddof=0."
    ),
    "tl.optimizers.adam(1e-3, weight_decay=0.1)": (
        "In the place of PyTorch's weight_decay= write tl.optimizers.adamw, or "
        "tl.optimizers.chain(tl.optimizers.add_decayed_weights(c), optimizer)."
    ),
    "tl.nn.dot_product_attention(x, x, x, attn_mask=x)": (
        "In the place of PyTorch's attn_mask= write mask= for booleans, bias= for numbers that are added; "
        "the axes are [batch, time, heads, features]."
    ),
    "tl.jit(tnp.sin, static_argnum=0)": "Do you mean static_argnums=?",
    "tl.grad(tnp.sin, argnum=0)": "Do you mean argnums=?",
    "tl.vmap(tnp.sin, in_axis=0)": "Do you mean in_axes=?",
    "tnp.sum(x, axes=0)": "Do you mean axis=?",
    "tl.custom_vjp(tnp.sin, nondiff_argnum=0)": "Do you mean nondiff_argnums=?",
    "tl.optimizers.adam(learning_rte=1e-3)": "Do you mean learning_rate=?",
    "tnp.sum(x, nonsense=1)": None,
    "(lambda x: x)(x, dim=1)": None,
}


@pytest.mark.parametrize("call", KEYWORDS)
def test_errors_for_keywords_say_what_is_meant(call):
    with pytest.raises(TypeError, match="unexpected keyword argument") as caught:
        eval(call, {"tl": tl, "tnp": tnp, "x": tnp.ones((2, 2))})
    for _ in range(2):
        tracebacks.filtered(caught.value, caught.value.__traceback__)
    advice, said = KEYWORDS[call], str(caught.value)
    wanted = [] if advice is None or "Did you mean" in said else [f"  {advice}"]  # Python 3.13 says it itself
    assert said.split("\n")[1:] == wanted


AT_ONCE = ("tl.opt", "tl.vmap(", "tl.nn.dot", "tl.nn.softmax", "tnp.sum(x, dim", "tnp.conc", "tnp.var")


@pytest.mark.parametrize("call", [call for call in KEYWORDS if call.startswith(AT_ONCE)])
def test_messages_for_keywords_say_it_before_they_are_printed(call):
    """So that test runners and logs show it: of what is called seldom, and of all in functions that are traced."""
    names = {"tl": tl, "tnp": tnp, "x": tnp.ones((2, 2))}
    for run in (lambda: eval(call, names), tl.jit(lambda: eval(call, names))):
        with pytest.raises(TypeError, match="unexpected keyword argument") as caught:
            run()
        told = "Did you mean" in str(caught.value) or f"\n  {KEYWORDS[call]}" in str(caught.value)
        assert told and not hasattr(caught.value, "__notes__")


def test_messages_for_keywords_of_traced_functions_say_it():
    with pytest.raises(TypeError) as caught:
        tl.jit(lambda x: tnp.delete(x, 0, dim=1))(np.ones((2, 3)))
    message = "{}() got an unexpected keyword argument 'dim'\n  Write axis= in the place of PyTorch's dim=."
    assert str(caught.value) == message.format("delete")
    with pytest.raises(TypeError) as caught:  # called by code of ours, which names the line, too
        tl.jit(lambda x: tnp.cross(x, x, dim=1))(np.ones((2, 3)))
    told, at, line = str(caught.value).partition("\n  At tests/api/host/test_tracebacks.py:")
    assert told == message.format("cross") and at and line.endswith("tnp.cross(x, x, dim=1))(np.ones((2, 3)))")


def test_the_error_for_arguments_of_checkpoint_says_where_they_go():
    with pytest.raises(TypeError) as caught:
        tl.checkpoint(tnp.sin, 1.0)  # pyright: ignore[reportCallIssue]  # which is the test
    assert str(caught.value).endswith("\n  Arguments are given to the function that it returns: checkpoint(f)(x).")


def test_what_python_prints_of_arithmetic_with_dicts():
    code = "import tapeless.numpy as tnp\nparams = {'w': tnp.ones(3)}\nparams - 0.1 * params"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.endswith(
        "TypeError: unsupported operand type(s) for *: 'float' and 'dict'\n"
        "  For the arrays of dicts write tl.tree.map(lambda p, g: p - 0.1 * g, params, gradients).\n"
    )


def test_what_python_prints_of_a_keyword():
    code = "import tapeless.numpy as tnp\ntnp.ones(3).sum(dim=0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    said = "TypeError: sum() got an unexpected keyword argument 'dim'\n  Write axis= in the place of PyTorch's dim=.\n"
    assert said in done.stderr

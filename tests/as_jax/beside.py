"""Each library is bound to the JAX that it was imported with, and there is no trace of us outside of `as_jax`."""

import pathlib
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module

import jax

import tapeless as tl
from tests.as_jax.facts import Fact

LIBRARIES = {
    "user.py": "import jax.numpy as jnp\ndef f(): return jnp.ones(2)",
    "other.py": "from jax import jit",
}


def facts() -> Iterator[Fact]:
    folder = tempfile.mkdtemp()
    for name, text in LIBRARIES.items():
        pathlib.Path(folder, name).write_text(text)
    sys.path.insert(0, folder)
    theirs = import_module("user")
    before, meta_path = dict(sys.modules), list(sys.meta_path)
    for block in ("first", "second"):
        try:
            with tl.as_jax():
                ours, other = import_module("user"), import_module("other")
                yield f"{block} block: a library is imported again", ours is not theirs, True
                yield f"{block} block: its arrays are ours", isinstance(ours.f(), tl.Array), True
                yield f"{block} block: from jax import jit", other.jit is tl.jit, True
                raise KeyError
        except KeyError:
            pass
        yield f"{block} block: sys.meta_path afterwards", sys.meta_path == meta_path, True
        yield f"{block} block: a library is put aside afterwards", "other" in sys.modules, False
        now = {name: module for name, module in sys.modules.items() if name in before}
        yield f"{block} block: sys.modules afterwards", now == before, True
        user = import_module("user")
        yield f"{block} block: the library is theirs afterwards", user is theirs, True
        yield f"{block} block: jax afterwards", sys.modules["jax"] is jax is import_module("jax"), True
        yield f"{block} block: arrays afterwards", isinstance(user.f(), tl.Array), False
        yield f"{block} block: jax.grad afterwards", float(jax.grad(lambda x: x**2)(3.0)), 6.0
    yield "a library that is imported afterwards", import_module("other").jit is jax.jit, True

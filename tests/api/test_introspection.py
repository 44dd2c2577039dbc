"""`help`, `?`, `inspect.signature` and `dir` show what users wrote, and public names only."""

import inspect
import pydoc
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, get_type_hints

import pytest

import tapeless as tl
import tapeless.numpy as tnp
from tapeless.experimental import checkify
from tapeless.tracer.jaxpr import ClosedJaxpr


def energy(params: Any, x: Any, *, scale: float = 1.0) -> Any:
    """Energy of a configuration."""
    return tnp.sum(params * x) * scale


SAME_NAME = {
    "jit": tl.jit,
    "jit with options": tl.jit(static_argnames="scale"),
    "vmap": tl.vmap,
    "checkpoint": tl.checkpoint,
    "remat with options": tl.remat(prevent_cse=False),
    "custom_jvp": tl.custom_jvp,
    "custom_vjp": tl.custom_vjp,
    "custom_gradient": tl.custom_gradient,
    "custom_vmap": tl.custom_batching.custom_vmap,
    "named_call": tl.named_call,
}
DERIVED = {
    "gradient_of_energy": tl.grad,
    "value_and_gradient_of_energy": tl.value_and_grad,
    "jacobian_of_energy": tl.jacfwd,
    "hessian_of_energy": tl.hessian,
    "jaxpr_of_energy": tl.make_jaxpr,
}


def shown(f: Any) -> str:
    return pydoc.render_doc(f, renderer=pydoc.plaintext)


def check_signature_and_help(f: Callable[..., Any], name: str) -> None:
    assert inspect.signature(f).parameters == inspect.signature(energy).parameters
    assert (f.__name__, f.__qualname__, f.__module__) == (name, name, __name__)
    assert inspect.unwrap(f) is energy
    assert f"{name}(params: Any, x: Any, *, scale: float = 1.0)" in shown(f)
    assert "Energy of a configuration." in shown(f) and "Energy of a configuration." in (inspect.getdoc(f) or "")


@pytest.mark.parametrize("how", SAME_NAME)
def test_transformed_functions_look_like_their_functions(how: str):
    f = SAME_NAME[how](energy)
    assert f.__wrapped__ is energy
    check_signature_and_help(f, "energy")


@pytest.mark.parametrize("name", DERIVED)
def test_derived_functions_are_named_after_their_functions(name: str):
    check_signature_and_help(DERIVED[name](energy), name)


def annotated(x: float, *, k: int = 3) -> float:
    """A function whose result has an annotation."""
    return x**k


RESULTS = {
    "grad": (tl.grad, inspect.Signature.empty),
    "value_and_grad": (tl.value_and_grad, inspect.Signature.empty),
    "jacfwd": (tl.jacfwd, inspect.Signature.empty),
    "jacrev": (tl.jacrev, inspect.Signature.empty),
    "hessian": (tl.hessian, inspect.Signature.empty),
    "make_jaxpr": (tl.make_jaxpr, ClosedJaxpr),
    "make_jaxpr with shapes": (lambda f: tl.make_jaxpr(f, return_shape=True), inspect.Signature.empty),
    "checkify": (checkify.checkify, tuple[checkify.Error, Any]),
    "jit of grad": (lambda f: tl.jit(tl.grad(f)), inspect.Signature.empty),
    "jit": (tl.jit, float),
}


@pytest.mark.parametrize("name", RESULTS)
def test_annotations_of_results(name: str):
    """Parameters keep theirs; what is returned is something else."""
    transform, result = RESULTS[name]
    f = transform(annotated)
    assert inspect.signature(f) == inspect.signature(annotated).replace(return_annotation=result)
    assert inspect.unwrap(f) is annotated and "A function whose result" in (inspect.getdoc(f) or "")
    assert get_type_hints(f).get("return") in (result, Any)


def test_functions_without_signatures_stay_without():
    for f in (tl.grad(max), tl.make_jaxpr(max)):
        with pytest.raises(ValueError, match="no signature found"):
            inspect.signature(f)


def test_signatures_of_ufuncs_of_users_functions():
    signature = inspect.signature(tnp.frompyfunc(lambda a, b, c=1: a * b, 2, 1))
    assert [str(p).partition(":")[0] for p in signature.parameters.values()] == ["a", "b", "out=None", "where=None"]
    assert "*args" in str(inspect.signature(tnp.frompyfunc(lambda *xs: xs[0], 2, 1)))
    assert "*args" in str(inspect.signature(tnp.frompyfunc(lambda a, out: a, 2, 1)))


def test_transformations_of_transformations():
    check_signature_and_help(tl.jit(tl.vmap(tl.checkpoint(energy))), "energy")
    check_signature_and_help(tl.jit(tl.grad(tl.jit(energy))), "gradient_of_energy")


class Model:
    """A class with transformed methods."""

    @tl.jit
    def step(self, x: Any) -> Any:
        """One step."""
        return x + 1

    @tl.checkpoint
    def block(self, x: Any) -> Any:
        """One step."""
        return x + 1

    @tl.custom_jvp
    def rule(self, x: Any) -> Any:
        """One step."""
        return x + 1


@pytest.mark.parametrize("name", ["step", "block", "rule"])
def test_methods(name: str):
    bound = getattr(Model(), name)
    assert list(inspect.signature(bound).parameters) == ["x"]
    assert list(inspect.signature(getattr(Model, name)).parameters) == ["self", "x"]
    assert (bound.__name__, bound.__qualname__, bound.__doc__) == (name, f"Model.{name}", "One step.")
    assert f"{name}(self, x: Any)" in shown(Model)


def namespaces(module: ModuleType, found: set[ModuleType]) -> Iterator[ModuleType]:
    """What `dir` leads to from a module."""
    found.add(module)
    yield module
    for name in dir(module):
        inner = getattr(module, name)
        if isinstance(inner, ModuleType) and not name.startswith("_") and inner not in found:
            yield from namespaces(inner, found)


def test_dir_of_every_namespace_shows_public_names():
    found = list(namespaces(tl, set()))
    assert len(found) > 60 and tl.scipy.stats.norm in found and tl.index in found
    assert [m.__name__ for m in found if not m.__name__.startswith("tapeless")] == []
    wrong = {m.__name__: {n for n in dir(m) if not n.startswith("__")} ^ set(m.__all__) for m in found}
    assert {name: names - {"__version__"} for name, names in wrong.items() if names - {"__version__"}} == {}


def test_every_namespace_refuses_other_names_with_advice():
    for module in namespaces(tl, set()):
        if module.__name__.startswith("tapeless.extend"):  # names of JAX's internals, without advice
            continue
        with pytest.raises(AttributeError) as caught:
            module.nothing  # the lookup is the test
        message, advice = str(caught.value).split("\n", 1)
        assert (message, advice[:2]) == (f"module {module.__name__!r} has no attribute 'nothing'.", "  ")


def test_every_public_function_has_a_signature_and_documentation():
    functions = [(m, n, getattr(m, n)) for m in namespaces(tl, set()) for n in m.__all__]
    functions = [(f"{m.__name__}.{n}", f) for m, n, f in functions if inspect.isroutine(f) or hasattr(f, "__wrapped__")]
    assert len(functions) > 1200
    assert [name for name, f in functions if not inspect.getdoc(f)] == []
    assert all(inspect.signature(f) is not None for _, f in functions)

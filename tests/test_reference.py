"""The pages of the API show every public name, with its signature and what it says."""

import importlib
import inspect
import re
from collections.abc import Iterator
from types import ModuleType

import pytest

import tapeless as tl
from tests.pages import DOCS, hook

reference = hook("reference_pages")
PAGES = {
    found["name"]: page
    for page in sorted((DOCS / "reference").glob("*.md"))
    for found in reference.NAMESPACE.finditer(page.read_text())
}
each_namespace = pytest.mark.parametrize("namespace", PAGES)


examples = hook("example_calls")
# Functions without an example: they read files or print, change the process, or are for the inside of a vmap.
WITHOUT = {
    "tapeless": """
        config_cpu_devices copy_to_host_async free_ref host_count host_id host_ids io_callback live_arrays load pmap
        print_environment_info print_saved_residuals set_default_device empty_ref""",
    "tapeless.numpy": """
        apply_along_axis apply_over_axes from_dlpack fromfile frompyfunc get_printoptions load printoptions save
        savez""",
    "tapeless.lax": """
        axis_size composite conv_general_dilated_local conv_general_permutations conv_general_shape_tuple
        conv_shape_tuple conv_transpose_shape_tuple gather pmax pmin pshuffle pswapaxes ragged_dot_general
        reduce_window_shape_tuple rng_bit_generator scaled_dot scatter scatter_add scatter_apply scatter_max scatter_min
        scatter_mul scatter_sub select_and_gather_add select_and_scatter_add stage""",
    "tapeless.lax.linalg": "ormqr",
    "tapeless.nn": "get_scaled_dot_general_config scaled_dot_general",
    "tapeless.scipy.special": "sph_harm_y",
    "tapeless.tree": "static",
    "tapeless.tree_util": """
        register_pytree_node register_pytree_with_keys register_pytree_with_keys_class register_static""",
}
QUICK = ("tapeless", "tapeless.numpy.fft", "tapeless.numpy.linalg", "tapeless.tree", "tapeless.tree_util")


@pytest.mark.parametrize("namespace", examples.TEXTS)
def test_every_function_has_an_example(namespace: str):
    module, written = importlib.import_module(namespace), examples.calls(namespace)
    functions = {name: found for name in module.__all__ if inspect.isroutine(found := getattr(module, name))}
    documented = {name for name, found in functions.items() if ">>> " in (inspect.getdoc(found) or "")}
    scopes = {name for name, found in functions.items() if "Scope" in str(inspect.signature(found).return_annotation)}
    assert functions.keys() - written.keys() - documented - scopes == {*WITHOUT.get(namespace, "").split()}


@pytest.mark.parametrize("namespace", QUICK)
def test_examples_run(namespace: str):
    """All of them run when the site is built."""
    assert all(examples.shown_examples(namespace).values())


@each_namespace
def test_every_public_name_is_shown(namespace: str):
    module = importlib.import_module(namespace)
    shown = set(re.findall(r"^## `(\w+)`", "\n".join(reference.reference(namespace, run=False)), re.MULTILINE))
    assert shown == {name for name in module.__all__ if not inspect.ismodule(getattr(module, name))}


def test_a_name_has_its_signature_sections_and_examples():
    text = "\n".join(reference.reference("tapeless", run=False))
    jvp = text[text.index("## `jvp`") : text.index("## `legacy_prng_key`")]
    assert "```python\njvp(\n    fun: Callable[..., Any],\n    primals: Sequence[Any]," in jvp
    assert "**Args**\n\n- `primals, tangents`: sequences" in jvp and "\n**Raises** TypeError if" in jvp
    assert "```pycon\n>>> jvp(lambda x: x**2" in jvp and "tapeless.tracer" not in jvp


def test_continued_lines_are_no_code():
    """Four spaces begin a block of code in Markdown, but within a list."""
    lines = "\n".join(reference.reference("tapeless.lax", run=False)).splitlines()
    wrong = []
    inside = listed = False
    for line in lines:
        inside ^= line.startswith("```")
        listed = line.startswith("- ") or (listed and line.startswith("    "))
        if line.startswith("    ") and not (inside or listed):
            wrong.append(line)
    assert wrong == []


def test_every_namespace_has_a_page():
    assert {module.__name__ for module in _namespaces(tl)} - PAGES.keys() == set()


def _namespaces(module: ModuleType) -> Iterator[ModuleType]:
    """List the public namespaces, but for those of which all names are namespaces."""
    inner = [found for name in module.__all__ if inspect.ismodule(found := getattr(module, name))]
    if len(inner) < len(module.__all__):
        yield module
    for x in inner:
        yield from _namespaces(x)

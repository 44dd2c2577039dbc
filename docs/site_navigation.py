"""The site's sidebar, which folds: the sections, and the pages of each in order. An extension of Sphinx."""

from typing import Any

SECTIONS: dict[str, str] = {
    "index": "tutorials/index how_to/index reference/index explanation decisions/index",
    "tutorials/index": """
        install first_gradient batches_and_curvature network simulations /notebooks/simulation
        /notebooks/network
    """,
    "how_to/index": """
        sharp_edges randomness trees /control_flow /custom_rules /memory /checkpoint /partial_evaluation /linalg
        /sparse
        complex_gradients /references /callbacks /saving /program_text donation debugging why_is_it_slow disk_cache
        /coming_from_jax coming_from_pytorch /own_primitives /adding_a_primitive
    """,
    "reference/index": """
        tapeless numpy numpy_linalg numpy_fft lax lax_linalg random nn nn_initializers tree tree_util
        optimizers checkpoint_policies testing debug image tapeless_index errors ref profiler experimental
        small_namespaces extend scipy_special scipy_linalg scipy_signal scipy_stats scipy_others /errors
        /primitives /rewrites /coverage
    """,
    "explanation": """
        tour linear_maps index_language symbolic explain simplifier guarantees xla_defects glossary
    """,
    "decisions/index": "0*",
}


def setup(app: Any) -> dict[str, Any]:
    """Register the extension."""
    app.connect("source-read", _list_pages)
    return {"parallel_read_safe": True}


def _list_pages(app: Any, name: str, source: list[str]) -> None:
    """Add the list of its pages to a section: Sphinx makes the sidebar of these lists."""
    if pages := SECTIONS.get(name, "").split():
        options = ":glob:\n:titlesonly:\n" + ":hidden:\n" * (name == "index")
        source[0] += f"\n\n```{{toctree}}\n{options}\n" + "\n".join(pages) + "\n```\n"

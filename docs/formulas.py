"""Formulas of the site: LaTeX between dollars becomes MathML as the site is built. An extension of Sphinx.

Browsers render MathML by themselves, by a font of the system's: a reader needs no script, no font of ours, no network.
"""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.errors import ExtensionError


def setup(app: Any) -> dict[str, Any]:
    """Register the extension."""
    app.add_html_math_renderer("mathml", (_visit_inline, _depart), (_visit_block, _depart))
    return {"parallel_read_safe": True}


def _visit_inline(translator: Any, node: nodes.math) -> None:
    _write(translator, node, "inline")


def _visit_block(translator: Any, node: nodes.math_block) -> None:
    _write(translator, node, "block")


def _depart(translator: Any, node: nodes.Node) -> None:
    """End a formula; its content is written already."""


def _write(translator: Any, node: Any, display: str) -> None:
    """Write a formula as MathML. Raises: ExtensionError for a command that is not known."""
    try:
        translator.body.append(mathml(node.astext(), display))
    except ValueError as error:
        raise ExtensionError(f"{node.source}:{node.line}: {error}") from error
    raise nodes.SkipNode


def mathml(latex: str, display: str) -> str:
    """Write a formula as MathML. Raises: ValueError for a command that is not known."""
    found = convert(latex, display=display)
    if "\\" in found:
        raise ValueError(f"the formula {latex} has a command that cannot be rendered.")
    return found

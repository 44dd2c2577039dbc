"""Pages of the API, from what can be imported: a name's signature, docstring and examples. An extension of Sphinx.

`::: tapeless.lax` in a page stands for the public names of that namespace. They are read off the objects: most are
defined elsewhere and given a name here, which a reader of source does not find (mkdocstrings showed 5 of 412 names).
What examples show was recorded by make_examples.py: to run all of them takes two minutes.
"""

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import make_examples

NAMESPACE = re.compile(r"^::: (?P<name>tapeless[\w.]*)$", re.MULTILINE)
MODULES = re.compile(r"\b(?:tapeless|collections\.abc|typing|numpy\.typing|numpy)\.(?:\w+\.)*(?=[A-Za-z])")
SECTION = re.compile(r"(Args|Returns|Raises|Attributes|Source|Yields):\s*(.*)")
ENTRY = re.compile(r"  ([\w*][\w*, .\[\]]*): (.*)")
ADDRESS = re.compile(r"<(?:[^<>]|<\w+>)* at 0x[0-9a-f]+>")
FENCE = "::::"  # around an object's description, in which there are blocks of code


def setup(app: Any) -> dict[str, Any]:
    """Register the extension."""
    app.connect("source-read", _write_names, priority=450)
    return {"parallel_read_safe": True}


def _write_names(app: Any, name: str, source: list[str]) -> None:
    """Write the names of a namespace where its directive is."""
    source[0] = NAMESPACE.sub(lambda found: "\n".join(reference(found["name"])), source[0])


def reference(namespace: str) -> Iterator[str]:
    """Write the public names of a namespace in alphabetical order, each as a directive of Sphinx."""
    module, examples = importlib.import_module(namespace), make_examples.recorded().get(namespace, {})
    yield from prose(inspect.cleandoc(module.__doc__ or ""))
    for name in sorted(module.__all__, key=str.lower):
        found = getattr(module, name)
        if not inspect.ismodule(found):
            yield f"{FENCE}{{py:{_kind(found)}}} {name}{_signature(found)}\n:module: {namespace}"
            yield "" if callable(found) else f":value: {' '.join(_plain(f'{found!r}').split()):.200}\n"
            yield from prose(own_docstring(found))
            if name in examples and ">>> " not in own_docstring(found):
                yield f"```pycon\n{examples[name]}\n```\n"
            yield from _methods(found)
            yield f"{FENCE}\n"


def _kind(found: Any) -> str:
    """Return what Sphinx calls the object: it writes classes and data differently."""
    return "class" if inspect.isclass(found) else "function" if callable(found) else "data"


def own_docstring(found: Any) -> str:
    """Return the docstring of an object, if it is not that of its class."""
    text = inspect.getdoc(found) or ""
    return (
        "" if not (inspect.isroutine(found) or inspect.isclass(found)) and text == inspect.getdoc(type(found)) else text
    )


def _signature(found: Any) -> str:
    """Write the parameters of a call with their types, and the type of the result; nothing if they are not known."""
    if not callable(found):
        return ""
    try:
        return _plain(str(inspect.signature(found)))
    except (TypeError, ValueError):
        return ""


def _plain(words: str) -> str:
    """Leave out the modules of types, and objects of which nothing but an address is known."""
    return MODULES.sub("", ADDRESS.sub("...", words)).replace("~", "")


def _methods(found: Any) -> Iterator[str]:
    """List the public methods of a class of ours, with the first line of what they say."""
    members = vars(found).items() if inspect.isclass(found) and found.__module__.startswith("tapeless") else ()
    for name, member in sorted(members):
        text = inspect.getdoc(member)
        if text and not name.startswith("_"):
            yield f"- `.{name}`: {text.splitlines()[0]}"
    yield ""


def prose(text: str) -> Iterator[str]:
    """Write a docstring as Markdown: sections as lists, examples as blocks of code."""
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = block.splitlines()
        code = next((i for i, line in enumerate(lines) if line.lstrip().startswith(">>> ")), len(lines))
        if lines[:code]:
            yield from _paragraph(lines[:code])
        if lines[code:]:
            yield "```pycon\n" + inspect.cleandoc("\n".join(lines[code:])) + "\n```\n"


def _paragraph(lines: list[str]) -> Iterator[str]:
    """Write lines of text, among which sections may begin: `Args:` with entries, `Returns: ..` with a continuation."""
    listing = False
    for line in lines:
        section, entry = SECTION.fullmatch(line), ENTRY.fullmatch(line)
        if section:
            listing = not section[2]
            yield f"\n**{section[1]}** {section[2]}".rstrip() + "\n" * listing
        elif listing and entry:
            yield f"- `{entry[1]}`: {entry[2]}"
        else:
            yield f"    {line.strip()}" if listing else line.strip()
    yield ""

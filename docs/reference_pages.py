"""Pages of the API, from what can be imported: a name's signature, docstring and examples. A hook of mkdocs.

`::: tapeless.lax` in a page stands for the public names of that namespace. They are read off the objects: most are
defined elsewhere and given a name here, which a reader of source does not find (mkdocstrings showed 5 of 412 names).
"""

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import example_calls

NAMESPACE = re.compile(r"^::: (?P<name>tapeless[\w.]*)$", re.MULTILINE)
MODULES = re.compile(r"\b(?:tapeless|collections\.abc|typing|numpy\.typing|numpy)\.(?:\w+\.)*(?=[A-Za-z])")
SECTION = re.compile(r"(Args|Returns|Raises|Attributes|Source|Yields):\s*(.*)")
ENTRY = re.compile(r"  ([\w*][\w*, .\[\]]*): (.*)")
ADDRESS = re.compile(r"<(?:[^<>]|<\w+>)* at 0x[0-9a-f]+>")
WIDE = 100  # characters of a signature on one line


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Write the names of a namespace where its directive is."""
    return NAMESPACE.sub(lambda found: "\n".join(reference(found["name"])), markdown)


def reference(namespace: str, run: bool = True) -> Iterator[str]:
    """Write the public names of a namespace in alphabetical order; `run` the examples that docstrings lack."""
    module, examples = importlib.import_module(namespace), example_calls.shown_examples(namespace) if run else {}
    yield from prose(inspect.cleandoc(module.__doc__ or ""))
    for name in sorted(module.__all__, key=str.lower):
        found = getattr(module, name)
        if not inspect.ismodule(found):
            yield f"## `{name}` {{ #{namespace}.{name} }}\n"
            yield from _signature(name, found)
            yield from prose(own_docstring(found))
            if name in examples and ">>> " not in own_docstring(found):
                yield f"```pycon\n{examples[name]}\n```\n"
            yield from _methods(found)


def own_docstring(found: Any) -> str:
    """Return the docstring of an object, if it is not that of its class."""
    text = inspect.getdoc(found) or ""
    return (
        "" if not (inspect.isroutine(found) or inspect.isclass(found)) and text == inspect.getdoc(type(found)) else text
    )


def _signature(name: str, found: Any) -> Iterator[str]:
    """Write a call with types; of a constant its value."""
    if not callable(found):
        yield f"```python\n{name} = {_plain(f'{found!r}'):.200}\n```\n"
        return
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):
        return
    words = f"{name}{_plain(str(signature))}"
    if len(words) > WIDE:
        parameters = [f"    {_plain(str(p))}," for p in _with_marks(signature)]
        result = signature.return_annotation
        arrow = "" if result is signature.empty else f" -> {_plain(inspect.formatannotation(result))}"
        words = "\n".join([f"{name}(", *parameters, f"){arrow}"])
    yield f"```python\n{words}\n```\n"


def _with_marks(signature: inspect.Signature) -> Iterator[Any]:
    """Yield the parameters, with / after those that have no keyword and * before those that need one."""
    before = None
    for each in signature.parameters.values():
        if before is each.POSITIONAL_ONLY and each.kind is not each.POSITIONAL_ONLY:
            yield "/"
        if each.kind is each.KEYWORD_ONLY and before not in (each.KEYWORD_ONLY, each.VAR_POSITIONAL):
            yield "*"
        before = each.kind
        yield each
    if before is inspect.Parameter.POSITIONAL_ONLY:
        yield "/"


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

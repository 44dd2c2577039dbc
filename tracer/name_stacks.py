"""Name stacks: named scopes, the transformations among them, and the programs that they are in, outermost first.

A stack is a text, so that it is hashed once: entries between slashes. A transformation's ends in a mark and wraps what
comes next: `vmap`, `jvp`, `layer` reads `vmap(jvp(layer))`. A mark alone is where a program begins, the body of a loop
or what `jit` traces. A rule of the user's is an entry with a mark of its own, which is not printed.
"""

from functools import lru_cache

_TRANSFORMS, _PROGRAM, _RULE = "\0", "\1", "\2"


def within(outer: str, entry: str) -> str:
    """Put a scope, or the stack of an equation, into the stack around."""
    return f"{outer}/{entry}" if outer and entry else outer or entry


def transformation(name: str) -> str:
    """Make the entry for a transformation."""
    return name + _TRANSFORMS


def rule(name: str) -> str:
    """Make the entry for what a rule of the user's computes."""
    return name + _RULE


def transformations(stack: str) -> list[str]:
    """List the transformations of the part within the innermost program, and rules of the user's, outermost first."""
    return [entry[:-1] for entry in inside(stack).split("/") if entry.endswith((_TRANSFORMS, _RULE))]


def program(outer: str) -> str:
    """Begin a program in the stack around, if there is one."""
    return within(outer, _PROGRAM) if outer else outer


@lru_cache(maxsize=4096)
def transpose_stack(stack: str, outer: str) -> str:
    """Make the stack of what is transposed while `outer` is the stack around."""
    begins = not outer or stack == outer or stack.startswith(f"{outer}/")
    rest = stack[len(outer) :].lstrip("/") if begins else stack
    return within(within(outer, transformation("transpose")), rest)


@lru_cache(maxsize=4096)
def format_stack(stack: str) -> str:
    """Print a stack, through all programs: `encoder/vmap(attention)`; nothing if it has transformations only."""
    named = any(entry and entry[-1] not in (_TRANSFORMS, _PROGRAM, _RULE) for entry in stack.split("/"))
    return _text([entry for entry in stack.split("/") if entry != _PROGRAM]) if named else ""


def inside(stack: str) -> str:
    """Return the part of a stack within the innermost program."""
    return stack.rpartition(_PROGRAM)[2].lstrip("/")


@lru_cache(maxsize=4096)
def shown_inside(stack: str) -> str:
    """Print the part of a stack within the innermost program, with transformations that wrap no name."""
    own = [entry for entry in inside(stack).split("/") if entry and not entry.endswith(_RULE)]
    return _text(own) if own else ""


def _text(entries: list[str]) -> str:
    done: list[str] = []
    pending: list[str] = []
    for entry in entries:
        if entry.endswith(_TRANSFORMS):
            pending.append(entry[:-1])
        elif not entry.endswith(_RULE):
            done.append(_wrapped(pending, entry))
            pending = []
    return "/".join([*done, _wrapped(pending, "")] if pending else done)


def _wrapped(transformations: list[str], name: str) -> str:
    return f"{'('.join([*transformations, name])}{')' * len(transformations)}"

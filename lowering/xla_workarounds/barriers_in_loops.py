"""Search of a module for optimization barriers in loops, and in the functions that loops call.

XLA on the CPU compiles a small loop to one kernel, and ends the process if a barrier is in it (jaxlib 0.10.2 to
0.11.2). A barrier outside of loops does no harm. The text is read by its braces, without a parser: `hlo.py` writes
operations in the generic form, each with its name in quotes. Of other texts, and of bytes, the answer is yes if they
have a barrier.
"""

import re
from collections.abc import Iterator

_BARRIER, _WHILE = '"stablehlo.optimization_barrier"', '"stablehlo.while"'
_WORD = "optimization_barrier"
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]|func\.func \w+ @\w+|callee = @\w+')
_REGIONS = 2  # of a loop: condition and body


def has_barrier_in_loop(text: str | bytes) -> bool:
    """Tell whether a loop of a module may have an optimization barrier."""
    if isinstance(text, bytes):
        return _WORD.encode() in text
    if _WORD not in text:
        return False
    if text.count(_WORD) != text.count(_BARRIER):
        return True
    if "while" not in text:
        return False
    if _WHILE not in text:
        return True
    having: set[str] = set()
    calls: list[tuple[str, str]] = []
    waiting: list[str] = []  # functions that run in loops; the list grows while it is read
    for function, token, looping in _tokens_by_function(text):
        if token == _BARRIER:
            if looping:
                return True
            having.add(function)
        elif looping:
            waiting.append(token)
        else:
            calls.append((function, token))
    for function in waiting:
        if function in having:
            return True
        waiting += [to for by, to in calls if by == function and to not in waiting]
    return False


def _tokens_by_function(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield each barrier, and the name of each called function: with the function around, and whether a loop is."""
    function, depth = "", 0
    loops: list[list[int]] = []  # of each loop around: the depth of its braces, and how many of its regions are left
    for found in _TOKENS.finditer(text):
        token = found[0]
        if token == "{":
            depth += 1
        elif token == "}":
            depth -= 1
            if loops and loops[-1][0] == depth:
                loops[-1][1] -= 1
                if not loops[-1][1]:
                    loops.pop()
        elif token == _WHILE:
            loops.append([depth, _REGIONS])
        elif token == _BARRIER:
            yield function, token, bool(loops)
        elif token.startswith("func."):
            function = token.rpartition("@")[2]
        elif token.startswith("callee"):
            yield function, token.rpartition("@")[2], bool(loops)

"""Print the files that a first call of `jit(grad(f))` enters, and their functions: `python -m tests.files_entered`.

A file counts if one of its functions runs, but not if it is only imported.
"""

import sys
from collections import Counter, defaultdict
from types import FrameType
from typing import Any

import tapeless as tl
import tapeless.numpy as tnp

LAYERS = ("api", "tracer", "interpreters", "lowering")


class FilesEntered:
    """A profiler that counts the calls of each function, by file; `importing` modules are left out."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._importing: list[FrameType] = []
        self.calls: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        code = frame.f_code
        if event == "return" and self._importing and self._importing[-1] is frame:
            self._importing.pop()
        elif event == "call" and code.co_name == "<module>":
            self._importing.append(frame)
        elif event == "call" and not self._importing and code.co_filename.startswith(self._root):
            file = code.co_filename.removeprefix(self._root)
            if file.split("/")[0] in LAYERS:
                self.calls[file][code.co_qualname] += 1


def files_entered() -> dict[str, Counter[str]]:
    """Count the calls of the functions of each file in a first gradient."""
    x = tnp.ones(3)
    f = tl.jit(tl.grad(lambda x: (tnp.sin(x) * x).sum()))
    entered = FilesEntered(__file__.removesuffix("tests/files_entered.py"))
    sys.setprofile(entered)
    f(x)
    sys.setprofile(None)
    return dict(sorted(entered.calls.items()))


def main() -> None:
    found = files_entered()
    lines = [f"{len(calls):3} functions, {calls.total():4} calls  {file}\n" for file, calls in found.items()]
    sys.stdout.writelines([*lines, f"{len(found)}\n"])


if __name__ == "__main__":
    main()

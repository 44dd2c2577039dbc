"""Stop a compiled program where it runs, and look at the values there: `debug.breakpoint`.

The frames of the user's program that are active where it is traced are kept with their local variables; those that are
being traced are sent to the host when the program gets there. Left out: debuggers other than that of the terminal,
steps, and changes to variables, which the program, being compiled, does not have.
"""

import cmd
import pprint
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import IO, Any, NamedTuple

from tapeless.host.callbacks import pure_callback
from tapeless.host.debug_callbacks import debug_callback
from tapeless.tracer import pytree, source
from tapeless.tracer.core import Tracer
from tapeless.tracer.primitives.elementwise import stop_gradient

# ---- frames --------------------------------------------------------------------------------------------------


class UserFrame(NamedTuple):
    """A frame of the user's program: where it is, and its variables, arrays in the place of tracers."""

    file: str
    function: str
    line: int
    variables: Mapping[str, Any]

    def shown(self, around: int) -> str:
        """Print the line that runs, marked, between as many lines before and after it."""
        numbers = range(max(1, self.line - around), self.line + around + 1)
        texts = [(n, source.line_of(self.file, n)) for n in numbers]
        lines = [f"{'->' if n == self.line else '  '}  {text}" for n, text in texts if text or n == self.line]
        return "\n".join([f"> {self.file}({self.line}) in {self.function}", *lines])


def breakpoint(
    *,
    backend: str | None = None,
    filter_frames: bool = True,
    num_frames: int | None = None,
    ordered: bool = False,
    token: Any = None,
    stdin: IO[str] | None = None,
    stdout: IO[str] | None = None,
) -> Any:
    """Stop when the program reaches this call, and take commands in the terminal: `help` lists them.

    The program goes on after `continue`; `quit` raises SystemExit in it. An expression is evaluated with the variables
    of the frame that is looked at, `up` and `down` go to others.

    Args:
      backend: "cli", the terminal, or None for the same.
      filter_frames: leave out the frames of Tapeless, and of files that are excluded from tracebacks.
      num_frames: how many frames are kept, from the innermost on; all if None.
      ordered: whether it stops after all ordered callbacks before it in the program, and before those after it.
      token: a pytree of arrays; it stops once they are computed, if the result is used.
      stdin, stdout: where commands come from, and what is shown goes; those of `sys` if None.
    Returns: `token`, without a derivative; None if there is none.
    Raises: ValueError for another backend, or if it is given a token and to be ordered.

    Commands can come from a string, and what is shown can go to one:

    >>> import io, tapeless as tl
    >>> commands, shown = io.StringIO("2 * x\\ncontinue\\n"), io.StringIO()
    >>> @tl.jit
    ... def f(x):
    ...     tl.debug.breakpoint(stdin=commands, stdout=shown, num_frames=1)
    ...     return x + 1
    >>> f(3.0)
    Array(4., dtype=float32, weak_type=True)
    >>> tl.effects_barrier()
    >>> print(shown.getvalue().rstrip())
    Stopped at a breakpoint; help lists the commands.
    > ...(3) in f
        @tl.jit
        def f(x):
    ->      tl.debug.breakpoint(stdin=commands, stdout=shown, num_frames=1)
            return x + 1
    (tdb) Array(6., dtype=float32)
    (tdb)
    """
    _check_options(backend, token, ordered)
    frames = list(_frames(sys._getframe(1), filter_frames))[:num_frames]  # pyright: ignore[reportPrivateUsage]
    traced, put = _traced([frame.variables for frame in frames])

    def stop(values: list[Any]) -> None:
        found = [frame._replace(variables=v) for frame, v in zip(frames, put(values), strict=True)]
        with _one_at_a_time:
            _Terminal(found, stdin, stdout).run()

    if token is None:
        debug_callback(stop, traced, ordered=ordered)
        return None
    return pure_callback(_then_first(stop), stop_gradient(token), stop_gradient(token), stop_gradient(traced))


def _check_options(backend: str | None, token: Any, ordered: bool) -> None:
    if backend not in (None, "cli"):
        raise ValueError(f"debug.breakpoint: the backend is 'cli'; there is no {backend!r}.")
    if token is not None and ordered:
        raise ValueError("debug.breakpoint: with a token its order is that of the values: ordered must be False.")


_one_at_a_time = threading.Lock()


def _then_first(stop: Callable[[list[Any]], None]) -> Callable[[Any, list[Any]], Any]:
    def stopped(token: Any, values: list[Any]) -> Any:
        stop(values)
        return token

    return stopped


def _frames(frame: FrameType | None, filtered: bool) -> Iterator[UserFrame]:
    """List the frames from one outwards."""
    while frame is not None:
        if not filtered or source.include_frame(frame):
            yield UserFrame(frame.f_code.co_filename, frame.f_code.co_qualname, frame.f_lineno, dict(frame.f_locals))
        frame = frame.f_back


def _traced(variables: list[Mapping[str, Any]]) -> tuple[list[Tracer], Callable[[list[Any]], list[Mapping[str, Any]]]]:
    """Find the live tracers in variables, and make the function that puts values in their places."""
    found = dict[int, Tracer]()
    for names in variables:
        for x in names.values():
            found |= {id(leaf): leaf for leaf in _leaves(x) if isinstance(leaf, Tracer) and leaf.owner.alive}

    def put(values: list[Any]) -> list[Mapping[str, Any]]:
        known = dict(zip(found, values, strict=True))
        return [{name: _with_values(x, known) for name, x in names.items()} for names in variables]

    return list(found.values()), put


def _leaves(x: Any) -> list[Any]:
    try:
        return pytree.leaves(x)
    except Exception:  # a class of the user's that does not take what its instance holds for now
        return [x]


def _with_values(x: Any, known: Mapping[int, Any]) -> Any:
    try:
        return pytree.tree_map(lambda leaf: known.get(id(leaf), leaf), x)
    except Exception:  # see _leaves
        return known.get(id(x), x)


# ---- the terminal --------------------------------------------------------------------------------------------


class _Terminal(cmd.Cmd):
    """Commands of the debugger; anything else is an expression that is evaluated."""

    prompt = "(tdb) "

    def __init__(self, frames: list[UserFrame], stdin: IO[str] | None, stdout: IO[str] | None) -> None:
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self._frames, self._at = frames, 0

    def run(self) -> None:
        """Take commands until a command goes on."""
        self._write("Stopped at a breakpoint; help lists the commands.")
        self._show(2)
        self.cmdloop()

    def do_p(self, arg: str) -> None:
        """p EXPRESSION: print its value."""
        self._print(arg, repr)

    def do_pp(self, arg: str) -> None:
        """pp EXPRESSION: print its value over several lines."""
        self._print(arg, pprint.pformat)

    def do_up(self, arg: str) -> None:
        """u(p): go to the frame that called this one."""
        self._go(1, "This is the outermost frame.")

    def do_down(self, arg: str) -> None:
        """d(own): go to the frame that this one called."""
        self._go(-1, "This is the innermost frame.")

    def do_list(self, arg: str) -> None:
        """l(ist): print the lines around the one that runs."""
        self._show(5)

    def do_where(self, arg: str) -> None:
        """w(here), bt: print where all frames are, the innermost last."""
        for frame in reversed(self._frames):
            self._write(f'  File "{frame.file}", line {frame.line}, in {frame.function}')

    def do_continue(self, arg: str) -> bool:
        """c(ont(inue)): let the program go on."""
        return True

    def do_quit(self, arg: str) -> None:
        """q(uit), exit: leave the program."""
        sys.exit(0)

    do_u, do_d, do_l, do_w, do_bt = do_up, do_down, do_list, do_where, do_where
    do_c = do_cont = do_continue
    do_q = do_exit = do_EOF = do_quit

    def default(self, line: str) -> None:
        """Print the value of an expression."""
        self._print(line, repr)

    def emptyline(self) -> bool:
        """Do nothing."""
        return False

    def _print(self, expression: str, shown: Callable[[Any], str]) -> None:
        try:
            self._write(shown(eval(expression, {}, dict(self._frames[self._at].variables))))
        except Exception as error:  # whatever the expression raises
            self._write(f"*** {traceback.format_exception_only(error)[-1].strip()}")

    def _go(self, step: int, at_the_end: str) -> None:
        if 0 <= self._at + step < len(self._frames):
            self._at += step
            self._show(2)
        else:
            self._write(at_the_end)

    def _show(self, around: int) -> None:
        if self._frames:
            self._write(self._frames[self._at].shown(around))

    def _write(self, text: str) -> None:
        self.stdout.write(f"{text}\n")

"""Unzipping for users: the linear jaxpr of a derivative, its check, its strict form, and costs."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from tapeless.arguments.argument_checks import FUNCTION_AND_ARGUMENTS, check_callable
from tapeless.compile.jit import program_of
from tapeless.differentiate import residuals
from tapeless.differentiate.autodiff import linear_jaxpr, zeros_among
from tapeless.differentiate.costs import ProgramCost
from tapeless.differentiate.linear_maps import LinearMap
from tapeless.differentiate.residuals import Residuals
from tapeless.interpreters import partial_eval, transpose
from tapeless.interpreters.analysis import cost as counting
from tapeless.interpreters.analysis import linear_a, linearity
from tapeless.interpreters.analysis import strict_form as strictness
from tapeless.interpreters.analysis.strict_form import StrictPrimitive
from tapeless.interpreters.jvp import jvp_jaxpr
from tapeless.interpreters.residuals.rematerialization import Policy, ProgramPolicy, save_all
from tapeless.tracer.errors import LinearityError
from tapeless.tracer.jaxpr import ClosedJaxpr, Jaxpr


class Halves:
    """A function in two programs, and the residuals between them."""

    residuals: Residuals

    @property
    def programs(self) -> list[ClosedJaxpr]:
        """The programs of both halves."""
        raise NotImplementedError


class Unzipped(Halves):
    """A function's derivative in two halves, primal and linear, and the residuals between them. Prints these three.

    jvp: arguments ; tangents of the inexact ones -> results ; tangents of those that have any: both halves in one.
    primal: arguments -> results, residuals.
    linear: residuals ; tangents of the inexact arguments -> tangents of those results that have any.
    transposed: residuals ; cotangents of these results -> cotangents of those arguments that get any.
    residuals: the arrays that the primal leaves for the linear half, with types, source lines and `.nbytes`.
    """

    def __init__(
        self, jvp: ClosedJaxpr, primal: ClosedJaxpr, linear: Jaxpr, residuals: Residuals, strict: bool
    ) -> None:
        self.jvp: Final = jvp
        self.primal: Final = primal
        self.linear: Final = linear
        self.residuals: Residuals = residuals
        self._strict = strict

    @property
    def programs(self) -> list[ClosedJaxpr]:
        """The programs of both halves."""
        return [self.primal, ClosedJaxpr(self.linear)]

    @cached_property
    def transposed(self) -> Jaxpr:
        """Transpose the linear half."""
        return _transposed(self.linear, self._strict)

    def __str__(self) -> str:
        return f"primal\n{self.primal}\n\nlinear\n{self.linear}\n\nresiduals\n{self.residuals}"

    __repr__ = __str__


def unzip(
    fun: Callable[..., Any], /, *primals: Any, policy: Policy | None = None, strict: bool = False, **kwargs: Any
) -> Unzipped:
    """Unzip the derivative of a function into a primal jaxpr, which is computed once, and a linear jaxpr.

    Args:
      primals, kwargs: arguments of `fun`, or their types (`tl.ShapeDtypeStruct`); it is differentiated in all that are
        inexact.
      policy: which values are residuals, one of `tl.checkpoint_policies` or a function
        `policy(primitive, *operand_types, **params) -> bool`; the linear half computes the others again. None: all.
      strict: in Linear A to the letter, no zero being symbolic and no code dead: what the scalar cost model counts.
    Returns: an `Unzipped`: programs `.jvp`, `.primal`, `.linear` and `.transposed`, and the `.residuals`; prints.
    Raises: NotImplementedError if `strict`, and `fun` loops (`while`); ValueError if there is a policy then;
      TypeError if `fun` or `policy` cannot be called, or no argument is inexact; whatever tracing `fun` raises.
    Source: Radul et al. 2023, section 5.

    >>> import tapeless.numpy as tnp
    >>> unzip(lambda x: tnp.sin(x) * x, 1.0).linear
    { lambda a:~f32[] b:~f32[] c:~f32[] ; ḋ:~f32[]. let
        ė:~f32[] = mul ḋ a
        ḟ:~f32[] = mul ė b
        ġ:~f32[] = mul c ḋ
        ḣ:~f32[] = add ḟ ġ
      in ; ḣ }
    """
    check_callable("unzip", fun, expected=FUNCTION_AND_ARGUMENTS)
    check_policy("unzip", policy)
    if strict and policy is not None:
        raise ValueError(
            "unzip: strict=True takes no policy, for the strict form saves every residual. Leave one of them out."
        )
    closed, names = residuals.differentiable_program("unzip", fun, primals, kwargs)
    return unzip_program(closed, names, policy, strict)


def unzip_program(
    closed: ClosedJaxpr, names: Sequence[str], policy: Policy | None = None, strict: bool = False
) -> Unzipped:
    """Unzip the program of a function; `names` are for its inputs other than constants."""
    some = residuals.flag_differentiated(closed)
    if strict:
        program, outer = linear_a.jvp(closed.jaxpr, some), ()
        halves = _strict_halves(program)
    else:
        program, outer, _ = jvp_jaxpr(closed.jaxpr, some)
        halves = partial_eval.unzip_jaxpr(program, program.linear_in, policy or save_all)
    consts = (*outer, *closed.consts)
    saved = residuals.residuals_of(halves, len(consts), names, policy)
    return Unzipped(ClosedJaxpr(program, consts), ClosedJaxpr(halves.primal, consts), halves.linear, saved, strict)


def _strict_halves(program: Jaxpr) -> partial_eval.UnzippedJaxpr:
    halves = linear_a.unzip(program)
    return partial_eval.UnzippedJaxpr(halves.nonlinear, halves.linear, (), halves.residuals)


def _transposed(linear: Jaxpr, strict: bool, zero_in: Sequence[bool] = ()) -> Jaxpr:
    if strict:
        return linear_a.transpose(linear, zero_in)
    return transpose.transpose_jaxpr(linear, (True,) * len(linear.outvars))[0]


def transpose_jaxpr(program: ClosedJaxpr | Jaxpr, *, strict: bool = False) -> Jaxpr:
    """Transpose a linear jaxpr: map cotangents of its results to cotangents of its linear inputs.

    Args:
      program: residuals ; tangents -> tangents, its linear variables marked: `unzip(..).linear`, the `.jaxpr` of a
        linear map, or the result of `check_linear` or `parse_jaxpr`. Constants are residuals.
      strict: in Linear A, every linear value being read exactly once, as `strict_form` and `unzip` write it.
    Returns: residuals ; cotangents of the results -> cotangents of those linear inputs that get any, or of all if
      `strict`; types are those of the tangents.
    Raises: LinearityError naming the reason and the equation, as `check_linear`, if the program is not linear, or has
      no linear input; NotImplementedError if it loops an unknown number of times (`while`); TypeError if it is no
      program; ValueError if it is in strict form, and `strict` is False.
    Source: Radul et al. 2023, section 6.

    >>> transpose_jaxpr(unzip(lambda x, y: x + 2 * y, 1.0, 1.0).linear)
    { lambda ; ȧ:~f32[]. let
        ḃ:~f32[] = mul ȧ 2.0
      in ; ȧ, ḃ }
    """
    _check_is_program(program)
    _check_has_linear_inputs(program if isinstance(program, Jaxpr) else program.jaxpr)
    closed = check_linear(program)
    of_strict_form = [p for p in (eqn.primitive for eqn in closed.jaxpr.eqns) if isinstance(p, StrictPrimitive)]
    if of_strict_form and not strict:
        raise ValueError(
            f"transpose_jaxpr: the program is in strict form, it has {of_strict_form[0]}: pass strict=True."
        )
    return _transposed(closed.jaxpr, strict, zeros_among(closed.consts))


def _check_is_program(program: Any) -> None:
    if not isinstance(program, (ClosedJaxpr, Jaxpr)):
        raise TypeError(
            f"transpose_jaxpr: expected a program, not {program!r:.80}.\n"
            "  Pass tl.unzip(f, *args).linear for a derivative; tl.linear_transpose transposes functions."
        )


def _check_has_linear_inputs(jaxpr: Jaxpr) -> None:
    if jaxpr.outvars and not any(jaxpr.linear_in):
        raise LinearityError(
            f"transpose_jaxpr: no input of {jaxpr.name} is marked as linear, so there is nothing to pull back to.\n"
            "  tl.check_linear(f, *args, linear=0) marks the inputs of a function that it is linear in;\n"
            "  tl.unzip(f, *args).linear is its derivative; parse_jaxpr reads names with dots, ȧ, as linear.",
            "no linear inputs",
            None,
        )


def check_linear(
    fun: Callable[..., Any] | ClosedJaxpr | Jaxpr,
    *args: Any,
    linear: int | Sequence[int] | None = None,
    strict: bool = False,
) -> ClosedJaxpr:
    """Check that a function is linear in its arguments: f(a x + b y) = a f(x) + b f(y).

    Args:
      fun: a function; or a program (`parse_jaxpr`, `unzip(..).linear`) whose linear variables are marked, and no args.
      args: arguments, or their types (`tl.ShapeDtypeStruct`); values are not used.
      linear: positions of the arguments that it must be linear in, together; all of them if None.
      strict: ask for explicit fan-out and disposal too, as `strict_form` writes them.
    Returns: the program, its linear inputs marked, which prints.
    Raises: LinearityError naming the reason, the equation and the line: bilinear, nonlinear primitive, affine,
      constant, nonlinear result depends on linear input, predicate depends on linear input, index depends on linear
      input, or if strict implicit dup, implicit drop, implicit nonlinear drop; TypeError if such an argument is not
      inexact.
    Source: Radul et al. 2023, section 3.

    >>> check_linear(lambda x: 2 * x + x, 1.0)
    { lambda ; ȧ:f32[]. let
        ḃ:f32[] = mul 2.0 ȧ
        ċ:f32[] = add ḃ ȧ
      in ; ċ }
    """
    if isinstance(fun, (ClosedJaxpr, Jaxpr)):
        return _checked_program(fun, args, linear, strict)
    *_, program, consts = linear_jaxpr("check_linear", fun, args, linear, strict)
    return ClosedJaxpr(program, consts)


def _checked_program(program: ClosedJaxpr | Jaxpr, args: Sequence[Any], linear: Any, strict: bool) -> ClosedJaxpr:
    if args or linear is not None:
        raise TypeError(
            "check_linear: a program takes no arguments here, and its variables say which inputs are linear."
        )
    closed = program if isinstance(program, ClosedJaxpr) else ClosedJaxpr(program)
    linearity.check_linear(closed.jaxpr, strict, zeros_among(closed.consts))
    return closed


def strict_form(fun: Any, *args: Any, linear: int | Sequence[int] | None = None) -> Jaxpr:
    """Rewrite a program with explicit fan-out and disposal, in Linear A: every linear value is read exactly once.

    Args:
      fun: a program (`make_jaxpr`, `unzip(..).linear`, `linearize`), or a function of args.
      linear: positions of the arguments that the function is linear in; none if None.
    Returns: a program with the operations `dup`, `drop`, `lzero` and `lit`, to be printed and counted.
    Raises: LinearityError if it is not linear; TypeError if `fun` is neither a program nor a function.
    Source: Radul et al. 2023, section 3.

    >>> strict_form(lambda x: x + x, 1.0, linear=0)
    { lambda ; ȧ:f32[]. let
        ḃ:f32[] ċ:f32[] = dup ȧ
        ḋ:f32[] = add ḃ ċ
      in ; ḋ }
    """
    if linear is not None:
        *_, program, consts = linear_jaxpr("strict_form", fun, args, linear)
        return strictness.strict_form(program, zeros_among(consts))
    if isinstance(fun, Unzipped):
        raise TypeError(
            "strict_form: expected one program, not the halves of `unzip`: pass its `.primal` or `.linear`."
        )
    (program,) = _programs("strict_form", fun, args)
    return strictness.strict_form(program.jaxpr)


def cost(fun: Any, /, *args: Any, **kwargs: Any) -> ProgramCost:
    """Count the cost of a program: operations by kind in two models, moved bytes, size, residuals, and XLA's figures.

    Args:
      fun: a program (`make_jaxpr`, `unzip(..).linear`, `linearize`), both halves of `unzip`, or a function of args
        and kwargs, which may be types (`tl.ShapeDtypeStruct`).
    Returns: a `ProgramCost`, which prints: `.work` and the like in the strict scalar model, and all again in `.sparse`,
      where operations on what is known to be zero are not counted, and functions as what they are composed of (an upper
      bound, `<=`, if an array has more than 65,536 elements: `.sparse_is_bound`);
      `.residual_bytes`; `.xla` compiles the program.
    Raises: TypeError if `fun` is neither a program nor a function; whatever tracing it raises.
    Source: Radul et al. 2023, section 7; Bernstein et al. 2020, section 6, for the sparse model.

    >>> cost(lambda x: x * x + 1, 1.0)
                strict  sparse
    nonlinear        2       2
    adds             0       0
    multiplies       0       0
    drops            0       0
    work             2       2
    moved 0 scalars, 0 bytes
    program size 7, residuals 4 bytes
    """
    return ProgramCost(_programs("cost", fun, args, kwargs))


def work(program: Any) -> int:
    """Scalar operations of a program, or of both halves of `unzip`: 1 for each scalar of a nonlinear result, for each
    linear addition and scaling, and for each linear scalar that is dropped.

    Raises: TypeError if it is not a program. Source: Radul et al. 2023, section 7.

    >>> work(unzip(lambda x: x * x, 1.0))
    3
    """
    return sum(counting.work(p.jaxpr) for p in _programs("work", program))


def program_size(program: Any) -> int:
    """Count the equations of a program, and references to its variables; called programs are counted once.

    Those of a derivative are in proportion to the function's, but for one thing: a call lists the residuals of all that
    is called inside of it, so that n calls, each in the body of the next, have n² / 2 names in these lists.

    Raises: TypeError if it is not a program.
    """
    return sum(counting.program_size(p.jaxpr) for p in _programs("program_size", program))


def residual_bytes(unzipped: Any) -> int:
    """Count the bytes of the residuals that the first half of `unzip` or `partial_eval` passes to the second.

    Raises: TypeError if it is not what one of them returns.
    """
    if not isinstance(unzipped, Halves):
        raise TypeError(
            f"residual_bytes: expected the result of tl.unzip, not an object of type {type(unzipped).__name__}."
        )
    return unzipped.residuals.nbytes


def check_policy(who: str, policy: Any) -> None:
    """Raise TypeError unless `policy` is None, one of `tl.checkpoint_policies` or a function."""
    if policy is not None and not callable(policy) and not isinstance(policy, ProgramPolicy):
        raise TypeError(f"{who}: expected a policy of tl.checkpoint_policies, or a function, not {policy!r}.")


def _programs(
    who: str, fun: Any, args: Sequence[Any] | None = None, kwargs: Mapping[str, Any] | None = None
) -> list[ClosedJaxpr]:
    """Collect the programs to count: one jaxpr, both halves of `unzip`, or a function traced with args."""
    if isinstance(fun, Halves):
        return fun.programs
    if isinstance(fun, (Jaxpr, LinearMap)):
        return [ClosedJaxpr(fun if isinstance(fun, Jaxpr) else fun.jaxpr)]
    if isinstance(fun, ClosedJaxpr):
        return [fun]
    if args is None:
        raise TypeError(
            f"{who}: expected a program, not {fun!r:.80}.\n"
            "  Pass tl.make_jaxpr(f)(*args) for a function, tl.unzip(f, *args) for its derivative."
        )
    check_callable(who, fun, expected="a program or a function and its arguments")
    return [program_of(who, fun, args, kwargs or {})]

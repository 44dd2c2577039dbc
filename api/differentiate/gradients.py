"""The value and the gradient of a function before they are compiled: traced, unzipped, and cut under budgets."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

from tapeless.differentiate import residuals
from tapeless.interpreters import transpose
from tapeless.interpreters.analysis import cost as counting
from tapeless.interpreters.jvp import jvp_jaxpr
from tapeless.interpreters.partial_eval import UnzippedJaxpr, unzip_body, unzip_jaxpr
from tapeless.interpreters.residuals.budget import BudgetPlans, SurveyPolicy
from tapeless.lowering import dispatch
from tapeless.lowering.compile import MemoryAnalysis
from tapeless.tracer.core import function_name
from tapeless.tracer.jaxpr import Jaxpr, eval_jaxpr
from tapeless.tracer.staging import trace_closed


class TracedGradient:
    """The value and the gradient of a function in all inexact arguments.

    name: that of the function. names: `the argument x` for each of its arguments. constants: how many arrays it closes
    over; they are the first inputs. halves: the primal and the linear half, as without a budget.
    """

    def __init__(self, who: str, fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        closed, names = residuals.differentiable_program_of_arrays(who, fun, args, kwargs)
        self.names: Final[tuple[str, ...]] = tuple(names)
        self._program, outer, _ = jvp_jaxpr(closed.jaxpr, residuals.flag_differentiated(closed))
        self.name: Final[str] = function_name(fun)
        self.constants: Final = len(outer) + len(closed.consts)

    @cached_property
    def halves(self) -> UnzippedJaxpr:
        """Unzip it, with everything saved."""
        return unzip_jaxpr(self._program, self._program.linear_in)

    @cached_property
    def plans(self) -> BudgetPlans:
        """Plan it for budgets."""
        policy = SurveyPolicy()
        unzip_body(self._program, self._program.linear_in, policy)
        return policy.plans[0]


def operations(halves: UnzippedJaxpr) -> int:
    """Count the operations of value and gradient as `tl.cost` does, but for values that are dropped."""
    found = [counting.cost(program) for program in (halves.primal, transposed(halves))]
    return sum([cost.work - cost.drops for cost in found])


def transposed(halves: UnzippedJaxpr) -> Jaxpr:
    """Transpose the linear half."""
    return transpose.transpose_jaxpr(halves.linear, (True,) * len(halves.linear.outvars))[0]


def analyze_memory(halves: UnzippedJaxpr) -> MemoryAnalysis:
    """Compile value and gradient as one program of arguments and cotangents, and say what memory it needs."""
    primal, backward = halves.primal, transposed(halves)
    n, results = len(primal.invars), len(primal.outvars) - halves.residuals

    def value_and_gradient(*xs: Any) -> list[Any]:
        outs = eval_jaxpr(primal, xs[:n])
        return [*outs[:results], *eval_jaxpr(backward, [*outs[results:], *xs[n:]])]

    cotangents = [v.aval for v in backward.invars if v.linear]
    program = trace_closed(value_and_gradient, [*primal.in_avals, *cotangents])
    return dispatch.executable(program, dispatch.device_of(())).memory_analysis()

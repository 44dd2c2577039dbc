"""Optimizers as pairs of pure functions, `init` and `update`, of optax's names, shapes and numbers.

A step: `updates, state = optimizer.update(grads, state, params)`, then `params = apply_updates(params, updates)`.
"""

from tapeless.optimizers.backtracking import (
    BacktrackingLinesearchInfo,
    ScaleByBacktrackingLinesearchState,
    scale_by_backtracking_linesearch,
)
from tapeless.optimizers.clipping import (
    adaptive_grad_clip,
    clip,
    clip_by_block_rms,
    clip_by_global_norm,
)
from tapeless.optimizers.lbfgs import (
    ScaleByLBFGSState,
    scale_by_lbfgs,
)
from tapeless.optimizers.line_searches import (
    value_and_grad_from_state,
)
from tapeless.optimizers.methods import (
    adagrad,
    adam,
    adamw,
    lbfgs,
    lion,
    rmsprop,
    sgd,
)
from tapeless.optimizers.moments import (
    global_norm,
    safe_increment,
)
from tapeless.optimizers.scaling import (
    ScaleByAdamState,
    ScaleByLionState,
    ScaleByRmsState,
    ScaleByRmsWithCountState,
    ScaleByRssState,
    ScaleByRStdDevState,
    ScaleByRStdDevWithCountState,
    ScaleByScheduleState,
    TraceState,
    WeightDecaySchedule,
    add_decayed_weights,
    scale,
    scale_by_adam,
    scale_by_learning_rate,
    scale_by_lion,
    scale_by_rms,
    scale_by_rss,
    scale_by_schedule,
    scale_by_stddev,
    trace,
)
from tapeless.optimizers.schedules import (
    constant_schedule,
    cosine_decay_schedule,
    cosine_onecycle_schedule,
    exponential_decay,
    join_schedules,
    linear_onecycle_schedule,
    linear_schedule,
    piecewise_constant_schedule,
    piecewise_interpolate_schedule,
    polynomial_schedule,
    sgdr_schedule,
    warmup_constant_schedule,
    warmup_cosine_decay_schedule,
    warmup_exponential_decay_schedule,
)
from tapeless.optimizers.transformation import (
    EmptyState,
    GradientTransformation,
    GradientTransformationExtraArgs,
    MaskedNode,
    MaskedState,
    OptState,
    Params,
    ScalarOrSchedule,
    Schedule,
    TransformInitFn,
    TransformUpdateFn,
    Updates,
    apply_updates,
    chain,
    identity,
    masked,
    set_to_zero,
    stateless,
    with_extra_args_support,
)
from tapeless.optimizers.zoom import (
    ScaleByZoomLinesearchState,
    ZoomLinesearchInfo,
    scale_by_zoom_linesearch,
)
from tapeless.tracer.late_imports import complete_namespace as _complete_namespace

# ---- written by docs/make_names.py from the imports above
__all__ = [
    "BacktrackingLinesearchInfo", "EmptyState", "GradientTransformation", "GradientTransformationExtraArgs",
    "MaskedNode", "MaskedState", "OptState", "Params", "ScalarOrSchedule", "ScaleByAdamState",
    "ScaleByBacktrackingLinesearchState", "ScaleByLBFGSState", "ScaleByLionState", "ScaleByRStdDevState",
    "ScaleByRStdDevWithCountState", "ScaleByRmsState", "ScaleByRmsWithCountState", "ScaleByRssState",
    "ScaleByScheduleState", "ScaleByZoomLinesearchState", "Schedule", "TraceState", "TransformInitFn",
    "TransformUpdateFn", "Updates", "WeightDecaySchedule", "ZoomLinesearchInfo", "adagrad", "adam", "adamw",
    "adaptive_grad_clip", "add_decayed_weights", "apply_updates", "chain", "clip", "clip_by_block_rms",
    "clip_by_global_norm", "constant_schedule", "cosine_decay_schedule", "cosine_onecycle_schedule",
    "exponential_decay", "global_norm", "identity", "join_schedules", "lbfgs", "linear_onecycle_schedule",
    "linear_schedule", "lion", "masked", "piecewise_constant_schedule", "piecewise_interpolate_schedule",
    "polynomial_schedule", "rmsprop", "safe_increment", "scale", "scale_by_adam", "scale_by_backtracking_linesearch",
    "scale_by_lbfgs", "scale_by_learning_rate", "scale_by_lion", "scale_by_rms", "scale_by_rss", "scale_by_schedule",
    "scale_by_stddev", "scale_by_zoom_linesearch", "set_to_zero", "sgd", "sgdr_schedule", "stateless", "trace",
    "value_and_grad_from_state", "warmup_constant_schedule", "warmup_cosine_decay_schedule",
    "warmup_exponential_decay_schedule", "with_extra_args_support",
]  # fmt: skip
# ---- end of what is written

_complete_namespace(globals())

"""Residuals: choose the values of the nonlinear half to save for the linear half, and those to compute again.

Who decides, and when:

- `linearize.ResidualProvenance`, while a function is differentiated eagerly or at the top of a trace: its values exist
  already, and so does each equation's result. It remembers how residuals were made, so that cheap ones are made again,
  not held.
- `cut`, once for each program that is unzipped as a whole (the body of a loop, a branch or a call, the argument of
  `tl.unzip`): the values with the fewest bytes from which the simplified linear half can be computed, by a minimum cut.
- `locations`, after the cut of a loop's body: the residuals to stack over the steps, and those that are the same in all
  of them, to save once.
- `rematerialization`, for a function under `tl.checkpoint`, when its program is unzipped: a policy is asked instead of
  the cut. `rematerialization_control_flow` asks a policy inside of loops and branches; `barriers` has what is computed
  again wait for the cotangents.
- `budget`, if the policy is a limit of bytes: it is given the whole program. `segments` cuts it in segments that the
  linear half computes again one after the other; before that, `chunks` divides loops that save too much.
- `saved_states`, for a `while`, and for a scan under `state_limit`: carries in a fixed number of slots. `schedules`
  says which, `repeated_step` what of a step is computed again.

Begin with `cut`.
"""

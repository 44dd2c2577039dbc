"""Mathematical constants: Python numbers, so that they take the dtype of the other operand."""

import math

e, pi, inf, nan = math.e, math.pi, math.inf, math.nan
euler_gamma = 0.5772156649015329
newaxis = None

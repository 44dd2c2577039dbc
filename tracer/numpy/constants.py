"""Mathematical constants: Python numbers, so that they take the dtype of the other operand."""

import math
from typing import Final

e: Final = math.e
pi: Final = math.pi
inf: Final = math.inf
nan: Final = math.nan
euler_gamma: Final = 0.5772156649015329
newaxis = None

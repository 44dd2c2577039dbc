"""Index rows of the gamma function and its relatives: pointwise."""

from tapeless.interpreters.index_rows import pointwise, rows
from tapeless.tracer.primitives import gamma_functions as g

for _primitive in (g.gamma_p, g.beta_p, g.betaln_p, g.comb_p, g.poch_p, g.xlogy_p, g.xlog1py_p, g.kl_div_p):
    rows[_primitive] = pointwise

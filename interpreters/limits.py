"""The limits of transformations: the numbers at which searches end, what they count, and what is lost beyond them.

No limit decides whether a program is correct, only how much of it is simplified. `tl.explain(..).limits` lists those
that stopped something. Limits of terms are in `tracer/terms/term_limits.py`, as is the test, `Limit.is_passed`.
"""

from typing import Final

from tapeless.tracer.terms.term_limits import Limit

# ---- the passes (simplify.py) ---------------------------------------------------------------------------------------

ROUNDS: Final = Limit(4, "ROUNDS", "runs of all passes over a program", "what the passes still find is left")

# ---- fusion (simplifications/fusion/) -------------------------------------------------------------------------------

READERS: Final = Limit(4, "READERS", "values that read one value", "it is not substituted into them")
TERMS: Final = Limit(8, "TERMS", "terms of a sum of products", "what would make more of them is not substituted")
FACTORS: Final = Limit(8, "FACTORS", "factors of a term", "what would make more of them is not substituted")
COMPOSITIONS: Final = Limit(
    32, "COMPOSITIONS", "terms that are composed to substitute one value into one reader", "it is not substituted"
)
PRODUCTS: Final = Limit(
    4,
    "PRODUCTS",
    "times the elements of factors, masks and result in the array of all products",
    "masked factors are tested for infinities at run time, and products selected in a loop",
)
PADDING: Final = Limit(
    2,
    "PADDING",
    "times the elements of an array and of its read, with padding",
    "the elements are gathered, not read from a padded array",
)
TAPS: Final = Limit(32, "TAPS", "taps of a window", "the sum over a window is no convolution")
TAP_ELEMENTS: Final = Limit(
    1024, "TAP_ELEMENTS", "elements of the products for each tap, at least", "the sum over a window is one contraction"
)
PERIODS: Final = Limit(
    32,
    "PERIODS",
    "values of variables of which at most one is inside of an axis",
    "the term is not split by them, and is gathered",
)
JOINT_VALUES: Final = Limit(
    2**62,
    "JOINT_VALUES",
    "values of the indices that two relations share",
    "they are joined by one index, and the others are compared",
)

# ---- indices that are affine (simplifications/fusion/affine_*.py) ---------------------------------------------------

PIECES: Final = Limit(
    12, "PIECES", "pieces of an affine value", "the value is unknown, so that masks and indices made of it are arrays"
)
DEFINITIONS: Final = Limit(
    32,
    "DEFINITIONS",
    "equations, one after another, that compute an affine value",
    "the value is unknown, so that masks and indices made of it are arrays",
)
QUOTIENTS: Final = Limit(4, "QUOTIENTS", "pieces of one remainder", "the remainder is unknown")
INDEXED_TERMS: Final = Limit(
    8, "INDEXED_TERMS", "terms of a gather or scatter at known places", "it stays a gather or scatter"
)
MOVED: Final = Limit(
    2,
    "MOVED",
    "times the elements of a gather or scatter that slices in its place move",
    "it stays a gather or scatter",
)

# ---- slice pushdown (simplifications/slicing/) ----------------------------------------------------------------------

PARTS: Final = Limit(4, "PARTS", "parts of one value", "the value is computed whole")
SAVED: Final = Limit(8, "SAVED", "elements that must be saved, at least", "the value is computed whole")

# ---- masks (simplifications/masks/) ---------------------------------------------------------------------------------

ALTERNATIVES: Final = Limit(
    4, "ALTERNATIVES", "alternatives of a region", "it is enlarged to the masks that all have in common"
)
TOGETHER: Final = Limit(6, "TOGETHER", "masks of one alternative", "the others are dropped, and the region is larger")
NESTED: Final = Limit(
    8,
    "NESTED",
    "definitions of coefficients and masks, one after another",
    "what is behind them is unknown, so that a choice is written that may not be needed",
)
EXPANDED: Final = Limit(16, "EXPANDED", "alternatives of an expanded mask", "the mask is not expanded")
READINGS: Final = Limit(6, "READINGS", "ways in which an operand is read", "the operand matters everywhere")

# ---- residuals ------------------------------------------------------------------------------------------------------

PROVENANCE: Final = Limit(
    32, "PROVENANCE", "operations, one after another, of which a value is known to be made", "it is saved as it is"
)
CUT: Final = Limit(
    256,
    "CUT",
    "values of a connected component, cut by maximum flow",
    "a larger one is cut as if no value had two readers",
)
SEGMENTS: Final = Limit(
    256,
    "SEGMENTS",
    "positions between equations at which a program may be cut in segments",
    "of several neighbours only the one is tried where the fewest bytes are live",
)
CHUNKS: Final = Limit(
    3,
    "CHUNKS",
    "times the best number of steps of a chunk, or part of it, that divides the steps of a loop",
    "some steps are left over, so that arrays are copied",
)

# ---- the index language and formulas --------------------------------------------------------------------------------

CONTRACTED_FACTORS: Final = Limit(
    6, "CONTRACTED_FACTORS", "factors of one contraction in a body", "its products are an array"
)
CONTRACTED_TERMS: Final = Limit(
    8, "CONTRACTED_TERMS", "terms of one contraction in a body", "its products are an array"
)
RAISED_TERMS: Final = Limit(32, "RAISED_TERMS", "terms of a program that is raised to a formula", "it has no formula")
RAISED_FACTORS: Final = Limit(12, "RAISED_FACTORS", "factors of a term of a formula", "it has no formula")
RAISED_POWER: Final = Limit(
    6, "RAISED_POWER", "times that a power repeats its base", "the power is a function of its base"
)
RAISED_PIECES: Final = Limit(2, "RAISED_PIECES", "pieces of a mask in a formula", "it has no formula")
SHARED_TERMS: Final = Limit(
    16, "SHARED_TERMS", "terms of all results whose common parts are searched", "common parts are computed twice"
)
SHARED_FORMS: Final = Limit(
    64, "SHARED_FORMS", "images of one term under symmetries", "common parts are computed twice"
)

# ---- constants, batches and analyses --------------------------------------------------------------------------------

STRUCTURE: Final = Limit(
    3, "STRUCTURE", "elements of an axis whose structure is searched, at least", "the constant is an array"
)
COSTLY: Final = Limit(
    20_000,
    "COSTLY",
    "elements that an example costs",
    "examples that branch differently run in a loop; below, both branches are computed",
)
SCAN_STEPS: Final = Limit(
    32, "SCAN_STEPS", "steps of a scan that are analysed one by one", "the first one, and one for all others, are"
)
FIXED_POINT: Final = Limit(
    8, "FIXED_POINT", "rounds until what is nonzero in a carry is a fixed point", "the carry may be nonzero everywhere"
)
SPARSE_ELEMENTS: Final = Limit(
    1 << 16,
    "SPARSE_ELEMENTS",
    "elements of an array whose zeros are told apart",
    "it may be nonzero everywhere, or is zero",
)
SPARSE_PRODUCTS: Final = Limit(
    1 << 26, "SPARSE_PRODUCTS", "products of a term whose zeros are told apart", "the term may be nonzero everywhere"
)
DEPENDENCE_ELEMENTS: Final = Limit(
    1 << 24,
    "DEPENDENCE_ELEMENTS",
    "elements of a constant whose zeros, or positions, are told apart in the pattern of a Jacobian",
    "it may be nonzero everywhere, and what is read at these positions may be read at all",
)
DEPENDENCE_STEPS: Final = Limit(
    1 << 15,
    "DEPENDENCE_STEPS",
    "equations in all steps of a loop",
    "the pattern of a Jacobian is that of a step that stands for all, which has more entries",
)

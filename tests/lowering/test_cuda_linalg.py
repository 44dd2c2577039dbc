"""Programs of linear algebra for a GPU: their calls of kernels are those of JAX, and what is around them is right.

No device is needed. JAX writes its calls for a device that is not there as well. On the CPU the programs run with
LAPACK's routines in the place of the kernels.
"""

import importlib.util
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tapeless as tl
from tapeless.lowering import compile, emit, lapack
from tapeless.lowering.emit import write_out
from tapeless.lowering.hlo import Function, Value
from tapeless.lowering.xla_workarounds import compat
from tapeless.tracer import dtypes
from tapeless.tracer.primitives.linalg import adjoint
from tapeless.tracer.staging import trace_to_jaxpr
from tapeless.tracer.types import ShapedArray, aval_of

linalg = tl.lax.linalg
DTYPES = ["float32", "complex128"]
LETTERS = {"float64": "d", "complex128": "z"}
OF_COMPLEX = {"syevd": "heevd", "sytrd": "hetrd", "orgqr": "ungqr"}
SQUARE, TALL, WIDE, LARGE = (2, 5, 5), (2, 5, 3), (2, 3, 5), (40, 50)

# name: (a function of `linalg`, the shape of its argument)
CALLS: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "cholesky": (lambda la, x: la.cholesky(x, symmetrize_input=False), SQUARE),
    "lu": (lambda la, x: la.lu(x), SQUARE),
    "lu of a tall matrix": (lambda la, x: la.lu(x), TALL),
    "qr": (lambda la, x: la.qr(x, full_matrices=False), TALL),
    "qr in full": (lambda la, x: la.qr(x, full_matrices=True), TALL),
    "qr with pivots": (lambda la, x: la.qr(x, full_matrices=False, pivoting=True), TALL),
    "eigh": (lambda la, x: la.eigh(x, symmetrize_input=False), SQUARE),
    "eigh of the upper triangle": (lambda la, x: la.eigh(x, lower=False, symmetrize_input=False), SQUARE),
    "svd": (lambda la, x: la.svd(x), TALL),
    "svd of a wide matrix": (lambda la, x: la.svd(x, full_matrices=False), WIDE),
    "svd of a large matrix": (lambda la, x: la.svd(x, full_matrices=False), LARGE),
    "singular values": (lambda la, x: la.svd(x, compute_uv=False), TALL),
    "svd by QR iteration": (lambda la, x: la.svd(x, algorithm=la.SvdAlgorithm.QR), TALL),
    "thin svd by QR iteration": (lambda la, x: la.svd(x, full_matrices=False, algorithm=la.SvdAlgorithm.QR), TALL),
    "singular values by QR iteration": (
        lambda la, x: la.svd(x, full_matrices=False, compute_uv=False, algorithm=la.SvdAlgorithm.QR),
        TALL,
    ),
    "tridiagonal": (lambda la, x: la.tridiagonal(x), SQUARE),
    "tridiagonal_solve": (lambda la, x: la.tridiagonal_solve(x[:, 0], x[:, 1], x[:, 2], x[:, :, :2]), SQUARE),
    "eig": (lambda la, x: la.eig(x), SQUARE),
    "perturbed": (lambda la, x: la.tridiagonal_solve(x[0], x[1], x[2], x[3][:, None], perturb_singular=True), (4, 5)),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_calls_are_those_of_jax(name: str, dtype: str):
    jax = pytest.importorskip("jax")
    if name == "eig" and importlib.util.find_spec("jax_cuda13_plugin"):
        pytest.skip("JAX asks the plugin for the version of cuSOLVER, which needs a device")
    f, shape = CALLS[name]
    x = np.zeros(shape, dtype)
    with jax.enable_x64(True):
        traced = jax.jit(lambda x: f(jax.lax.linalg, x)).trace(x)
        theirs = traced.lower(lowering_platforms=("cuda",)).as_text()
    assert calls(text_for_gpu(lambda x: f(linalg, x), x)) == calls(theirs)


def text_for_gpu(f: Callable[..., Any], *args: Any) -> str:
    jaxpr, _ = trace_to_jaxpr(lambda *xs: tl.tree.leaves(f(*xs)), [aval_of(x) for x in args])
    return emit.module(jaxpr, platform="gpu").text


def calls(text: str) -> list[tuple[str, ...]]:
    """The calls of kernels in a module: name, options, layouts, results in the place of operands, types."""
    return [_parts(line) for line in text.splitlines() if "stablehlo.custom_call" in line]


def _parts(line: str) -> tuple[str, ...]:
    target = re.search(r'call_target_name = "(\w+)"|custom_call @(\w+)\(', line)
    assert target is not None
    fields = (r"[^_]backend_config = \{(.*?)\}", r"operand_layouts = (\[.*?\])[,}]", r"result_layouts = (\[.*?\])[,}]")
    aliases = re.findall(r"output_tuple_indices = (\[\d*\]), operand_index = (\d+)", line)
    types = line[line.rindex(" : (") :].split(" loc(")[0]
    found = [re.search(field, line.replace("mhlo.backend_config", " backend_config")) for field in fields]
    texts = [re.sub(r"dense<\[?([\d, ]*)\]?>", r"\1", x.group(1)) if x else "" for x in found]
    return (target.group(1) or target.group(2), *texts, str(aliases), types)


# ---- on the CPU

VALUES: dict[str, tuple[Callable[..., Any], tuple[int, ...]]] = {
    "cholesky": (lambda x: linalg.cholesky(x @ adjoint(x)), WIDE),
    "lu": (linalg.lu, TALL),
    "det": (tl.numpy.linalg.det, SQUARE),
    "qr": (linalg.qr, TALL),
    "qr with pivots": (lambda x: linalg.qr(x, pivoting=True), TALL),
    "eigh": (linalg.eigh, SQUARE),
    "eigh of the upper triangle": (lambda x: linalg.eigh(x, lower=False, symmetrize_input=False), SQUARE),
    "svd": (linalg.svd, TALL),
    "thin svd of a wide matrix": (lambda x: linalg.svd(x, full_matrices=False), WIDE),
    "thin svd of a large matrix": (lambda x: linalg.svd(x, full_matrices=False), LARGE),
    "singular values": (lambda x: linalg.svd(x, compute_uv=False), WIDE),
    "by QR iteration": (lambda x: linalg.svd(x, algorithm=linalg.SvdAlgorithm.QR), TALL),
    "wide by QR iteration": (lambda x: product(x, full_matrices=True), WIDE),
    "wide and thin by QR iteration": (lambda x: product(x, full_matrices=False), WIDE),
    "pinv": (tl.numpy.linalg.pinv, WIDE),
    "tridiagonal": (linalg.tridiagonal, SQUARE),
    "eig": (linalg.eig, SQUARE),
    "four equations": (lambda x: tridiagonal_solve(x), (2, 4, 5)),
    "two equations": (lambda x: tridiagonal_solve(x), (2, 2, 5)),
    "one equation": (lambda x: tridiagonal_solve(x), (1, 5)),
}


def product(x: Any, full_matrices: bool) -> Any:
    """The product of the factors, whose signs are free; and V @ V^H, which the zeros of S leave out."""
    u, s, vh = linalg.svd(x, full_matrices=full_matrices, algorithm=linalg.SvdAlgorithm.QR)
    return (u * s[..., None, :]) @ vh[..., : s.shape[-1], :], adjoint(vh) @ vh


def tridiagonal_solve(x: Any) -> Any:
    return linalg.tridiagonal_solve(x[..., 0], x[..., 1] + 4, x[..., 2], x[..., 3:])


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", VALUES)
def test_values_with_lapack_in_the_place_of_kernels(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch):
    f, shape = VALUES[name]
    parts = np.random.default_rng(0).normal(size=(2, *shape))
    x = parts[0] + 1j * parts[1] if dtype == "complex128" else parts[0]
    wanted = [np.asarray(y) for y in tl.tree.leaves(f(x))]
    monkeypatch.setattr(lapack, "custom_call", by_lapack)
    text = text_for_gpu(f, x)
    avals = [aval_of(y) for y in wanted]
    found = compile.compile_module(text, out_avals=avals, device=tl.devices("cpu")[0])(tl.device_put(x))
    for y, z in zip(found, wanted, strict=True):
        assert np.isfinite(z).all()
        np.testing.assert_allclose(np.asarray(y), z, atol=1e-13)  # some hundred roundings of numbers of order 1


call_kernel = lapack.custom_call


def by_lapack(
    f: Function,
    target: str,
    operands: Sequence[Value],
    outs: Sequence[ShapedArray],
    in_place: Sequence[tuple[int, int]],
    rank_of_matrices: int | None = None,
    **options: Any,
) -> list[Value]:
    """Emit what a kernel for GPUs computes, by LAPACK's routines."""
    compat.load_lapack("cpu")
    x, *_ = avals = [y.aval for y in operands]
    is_complex = dtypes.is_complex(x.dtype)

    def call(routine: str, outs: Sequence[ShapedArray], in_place: Sequence[tuple[int, int]], **letters: Any) -> Any:
        name = f"lapack_{LETTERS[x.dtype.name]}{OF_COMPLEX.get(routine, routine) if is_complex else routine}_ffi"
        return call_kernel(f, name, operands, outs, in_place, **letters)

    routine = target.removeprefix("cusolver_").removeprefix("cuhybrid_").removeprefix("cusparse_").removesuffix("_ffi")
    match routine:
        case "getrf" | "geqrf" | "orgqr" | "geqp3":
            assert options == ({"magma": "auto"} if routine == "geqp3" else {})
            return call(routine, outs, in_place)
        case "cu_lu_pivots_to_permutation":
            size = outs[0].shape[-1]
            return write_out(f, lambda pivots: linalg.lu_pivots_to_permutation(pivots, size), operands)
        case "potrf":
            return call(routine, outs, in_place, uplo="L" if options["lower"] else "U")
        case "syevd" | "sytrd":
            mode = {"mode": "V"} if routine == "syevd" else {}
            return call(routine, outs, in_place, **mode, uplo="L" if options["lower"] else "U")
        case "eig_real" | "eig_comp":
            assert is_complex == (routine == "eig_comp")
            modes = {f"compute_{side}": "V" if options[side] else "N" for side in ("left", "right")}
            return call("geev", outs, in_place, **modes)
        case "gtsv2":
            info = ShapedArray(x.shape[:-1], np.dtype(np.int32))
            return call("gtsv", [*avals, info], [(k, k) for k in range(4)])[3:4]
        case "gesvd":
            return _gesvd(call, outs, **options)
    assert routine == "gesvdj"
    return _gesvdj(f, call, outs, **options)


def _gesvd(call: Any, outs: Any, compute_uv: bool, full_matrices: bool, transposed: bool) -> list[Value]:
    *_, m, n = outs[0].shape
    assert m >= n and not transposed  # cuSOLVER has no other
    return call("gesvd", outs, ((0, 0),), mode="A" if full_matrices else "S")


def _gesvdj(f: Function, call: Any, outs: Any, compute_uv: bool, full_matrices: bool) -> list[Value]:
    """Emit LAPACK's SVD, and V in the place of V^H."""
    x, s, u, v, info = outs
    *batch, n, k = v.shape
    modes = {"mode": "A" if full_matrices else "S"}
    *rest, vh, status = call("gesdd", [x, s, u, v.update(shape=(*batch, k, n)), info], ((0, 0),), **modes)
    return [*rest, *write_out(f, adjoint, [vh]), status]

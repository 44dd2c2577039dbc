"""Fourier transforms from real numbers to real numbers: of any axes, which are lengthened or cut, with every norm."""

from tests.fuzzing.builder import Builder
from tests.fuzzing.families.shaping import axis_of
from tests.fuzzing.sizes import summed

ONE_AXIS = (
    "tnp.fft.rfft({0}, {how}).real", "tnp.fft.rfft({0}, {how}).imag", "tnp.fft.fft({0}, {how}).imag",
    "tnp.fft.ifft({0}, {how}).real", "tnp.fft.irfft({0}, {how})", "tnp.fft.hfft({0}, {how})",
    "tnp.fft.ihfft({0}, {how}).real", "tnp.fft.irfft(tnp.fft.rfft({0}, {how}) * (1 + .5j), {how})",
)  # fmt: skip
SEVERAL_AXES = (
    "tnp.fft.rfftn({0}, {how}).real", "tnp.fft.fftn({0}, {how}).imag", "tnp.fft.irfftn({0}, {how})",
    "tnp.fft.irfftn(tnp.fft.rfftn({0}, {how}) * (1 - .5j), {how})", "tnp.fft.ifftn({0} * (1 + 1j), {how}).real",
)  # fmt: skip


def of_one_axis(b: Builder) -> None:
    x = b.pick("f", least=1)
    n = b.integer(1, 6)
    if b.session.extent.is_large and b.chance(0.5):
        n = b.session.extent.long
    how = f"n={n}, axis={axis_of(b, x)}, norm={b.choice((None, 'ortho', 'forward'))!r}"
    b.emit(b.choice(ONE_AXIS).replace("{how}", how), x, bound=2 * x.bound * summed(n))


def of_several_axes(b: Builder) -> None:
    x = b.pick("f", least=1)
    axes = [int(d) for d in b.rng.permutation(x.ndim)[: b.integer(1, x.ndim)]]
    lengths = [b.integer(1, 4) for _ in axes]
    how = f"s={lengths}, axes={axes}, norm={b.choice((None, 'ortho', 'forward'))!r}"
    b.emit(b.choice(SEVERAL_AXES).replace("{how}", how), x, bound=2 * x.bound * 4 ** len(axes))


FAMILIES = {"transforms": of_one_axis, "transforms_of_axes": of_several_axes}

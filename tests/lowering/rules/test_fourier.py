"""Fourier transforms where the device's library takes another view of them than the CPU's."""

import numpy as np

import tapeless as tl
from tapeless import lax
from tapeless.lowering import emit
from tapeless.lowering.rules.fourier import irfft_after_ifft


def test_the_last_axis_of_irfft_is_by_itself_on_a_gpu(rng: np.random.Generator):
    """cuFFT reads symmetry into all axes of a transform to real numbers: there is one, after the others."""
    for batch in ((), (2,), (2, 3)):
        for lengths in ((3, 4), (2, 5), (2, 3, 6)):
            shape = (*batch, *lengths[:-1], lengths[-1] // 2 + 1)
            x = rng.normal(size=shape) + 1j * rng.normal(size=shape)
            jaxpr = tl.make_jaxpr(lambda x, n=lengths: lax.fft(x, "irfft", n))(x).jaxpr
            for platform, count in (("cpu", 1), ("cuda", 2)):
                text = emit.module(jaxpr, platform=platform).text
                assert text.count('"stablehlo.fft"') == count
            assert f"fft_length = array<i64: {lengths[-1]}>, fft_type = #stablehlo<fft_type IRFFT>" in text
            found = irfft_after_ifft(tl.numpy.asarray(x), lengths)
            np.testing.assert_allclose(found, np.fft.irfftn(x, lengths, range(-len(lengths), 0)), atol=1e-13)

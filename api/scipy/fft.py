"""Cosine transforms under the names of `scipy.fft`: `tapeless.scipy.fft`."""

from tapeless.tracer.cosine_transforms import dct, dctn, idct, idctn

__all__ = ["dct", "dctn", "idct", "idctn"]

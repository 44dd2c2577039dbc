"""Vector quantization under the names of `scipy.cluster.vq`."""

from tapeless.tracer.vector_quantization import vq

__all__ = ["vq"]

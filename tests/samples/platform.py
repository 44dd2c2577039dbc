"""Rows of the platform, which is the CPU."""

import numpy as np

from tapeless.tracer.primitives.control_flow import platform_index_p
from tests.samples.sample import Sample

ROWS = [
    Sample(platform_index_p, (), lambda platforms: np.int32(1), {"platforms": (("cuda", "tpu"), ("cpu",))}),
    Sample(platform_index_p, (), lambda platforms: np.int32(1), {"platforms": (("tpu",), None)}, label="default"),
]

"""Describe the machine, and the packages installed on it, for reports of bugs."""

import os
import platform
import subprocess
import sys

import numpy as np

from tapeless.lowering import devices
from tapeless.lowering.xla_workarounds import compat


def print_environment_info(return_string: bool = False) -> str | None:
    """Print versions, devices and settings for a bug report; return them with `return_string`."""
    device = devices.devices()[0]
    lines = [
        f"jaxlib: {compat.jaxlib_version()}",
        f"numpy:  {np.__version__}",
        f"python: {' '.join(sys.version.split())}",
        f"device info: {device.device_kind}-{devices.device_count()}, {devices.local_device_count()} local devices",
        f"process_count: {devices.process_count()}",
        f"platform: {platform.uname()}",
        *[f"{name}={value}" for name, value in os.environ.items() if name.startswith(("TAPELESS_", "XLA_"))],
        *_nvidia_smi(),
    ]
    text = "\n".join(lines)
    if return_string:
        return text
    sys.stdout.write(f"{text}\n")
    return None


def _nvidia_smi() -> list[str]:
    try:
        return ["", "$ nvidia-smi", subprocess.check_output(["nvidia-smi"], stderr=subprocess.DEVNULL).decode()]
    except (OSError, subprocess.CalledProcessError):
        return []

"""The state of a program on several machines: `jax._src.distributed`, of which there is one machine, and no service."""

from typing import Final

__all__ = ["global_state"]


class _SingleProcess:
    """The state where nothing is distributed: process 0 of 1, with no client and no service."""

    client: Final = None
    service: Final = None
    coordinator_address: Final = None
    process_id: Final = 0
    num_processes: Final = 1


global_state: Final = _SingleProcess()


def reached_preemption_sync_point(step_id: int) -> bool:
    """Tell whether all machines are to save their state now, because one of them ends: never, without a service."""
    return False

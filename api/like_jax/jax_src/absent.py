"""Names of JAX's that libraries import without need, and that are not there: classes that raise when they are used.

A library that names shardings at its top, and runs on one device, can be imported so. No object is an instance of such
a class, and none can be made. Not for names that code asks for by `hasattr`, to do without them.
"""

from typing import Any, NoReturn

NAMES = frozenset(
    """
    jax.P jax.shard_map jax.export.export
    jax.sharding.AbstractMesh jax.sharding.Mesh jax.sharding.NamedSharding jax.sharding.PartitionSpec
    jax.experimental.layout.Layout
    jax.experimental.mesh_utils.create_device_mesh jax.experimental.multihost_utils.broadcast_one_to_all
    jax.experimental.multihost_utils.global_array_to_host_local_array
    jax.experimental.multihost_utils.host_local_array_to_global_array
    jax.experimental.multihost_utils.process_allgather jax.experimental.multihost_utils.sync_global_devices
    jax.experimental.array_serialization.serialization.GlobalAsyncCheckpointManager
    jax.experimental.array_serialization.serialization.GlobalAsyncCheckpointManagerBase
    jax.experimental.array_serialization.serialization.get_tensorstore_spec
    jax.experimental.colocated_python.colocated_python
    jax.experimental.colocated_python.func.make_callable jax.experimental.colocated_python.serialization.DeviceList
    jax.experimental.pallas.BlockSpec jax.experimental.pallas.pallas_call jax.experimental.pallas.triton.CompilerParams
    jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_kernel
    jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask
    jax.experimental.sparse.BCOO jax.experimental.sparse.BCSR jax.experimental.sparse.JAXSparse
    jax.experimental.sparse.linalg.spsolve
    jax._src.checkify.JaxException jax._src.checkify.Out
    jax.extend.core.DropVar jax.extend.core.primitives.call_p jax.extend.core.primitives.closed_call_p
    jax.extend.ifrt_programs.ifrt_programs jax.interpreters.pxla.global_avals_to_results_handler
    """.split()
)

# Names that code replaces where they are there, so that one that is not there would change nothing silently.
REPLACED = frozenset({"jax._src.compiler.backend_compile", "jax._src.compiler.backend_compile_and_load"})


def absent(name: str) -> type:
    """Make a class by the name of an absent class.

    Raises: when it is called, NotImplementedError; when it is asked for a member, AttributeError. Both name it.
    """
    return _Absent(name.rpartition(".")[2], (), {"__module__": name.rpartition(".")[0]})


def lacking(name: str) -> str:
    """Say that a name is missing."""
    return f"{name}: Tapeless stands for JAX here, and does not have it; see 'Coverage' in its documentation."


class _Absent(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(lacking(f"{cls.__module__}.{cls.__qualname__}"))

    def __getattr__(cls, name: str) -> NoReturn:
        raise AttributeError(lacking(f"{cls.__module__}.{cls.__qualname__}.{name}"), name=name, obj=cls)

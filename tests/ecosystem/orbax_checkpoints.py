"""Trees of arrays, a model of nnx and a series of steps, saved and restored by Orbax."""

import json
import sys
import tempfile
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import nnx
from flax.training import checkpoints, train_state

FOLDER = tempfile.mkdtemp()
TREE = {"a": jnp.arange(3.0) / 3, "b": [jnp.ones((2, 2), jnp.bfloat16), 3, np.arange(2)], "c": jnp.zeros((), jnp.int32)}


def listed(tree: Any) -> list[Any]:
    return [np.asarray(x, float).tolist() for x in jax.tree.leaves(tree)]


def model() -> nnx.Module:
    return nnx.Sequential(nnx.Linear(3, 4, rngs=nnx.Rngs(0)), nnx.Linear(4, 2, rngs=nnx.Rngs(1)))


found: dict[str, Any] = {}
graph, weights = nnx.split(model())
with ocp.StandardCheckpointer() as checkpointer:
    checkpointer.save(f"{FOLDER}/tree", TREE)
    checkpointer.save(f"{FOLDER}/model", weights)
    checkpointer.wait_until_finished()
    templates = {"values": TREE, "types": jax.tree.map(ocp.utils.to_shape_dtype_struct, TREE), "none": None}
    for name, template in templates.items():
        back = checkpointer.restore(f"{FOLDER}/tree", template)
        dtypes = " ".join([str(getattr(x, "dtype", "number")) for x in jax.tree.leaves(back)])
        found[name] = {"values": listed(back), "dtypes": dtypes}
    shapes = nnx.split(nnx.eval_shape(model))[1]
    found["model"] = listed(nnx.merge(graph, checkpointer.restore(f"{FOLDER}/model", shapes))(jnp.ones((1, 3))))
with ocp.CheckpointManager(f"{FOLDER}/steps", options=ocp.CheckpointManagerOptions(max_to_keep=2)) as manager:
    for i in range(4):
        manager.save(i, args=ocp.args.StandardSave({"w": jnp.full(2, i)}))
    manager.wait_until_finished()
    found["kept"] = list(manager.all_steps())
    found["last"] = listed(manager.restore(3, args=ocp.args.StandardRestore({"w": jnp.zeros(2, jnp.int32)})))
dense = nn.Dense(3)
params = dense.init(jax.random.key(0), jnp.ones((1, 2)))["params"]
state = train_state.TrainState.create(apply_fn=dense.apply, params=params, tx=optax.adam(0.1))
saver = ocp.PyTreeCheckpointer()
checkpoints.save_checkpoint(f"{FOLDER}/state", state, 5, orbax_checkpointer=saver)
found["state"] = listed(checkpoints.restore_checkpoint(f"{FOLDER}/state", state, orbax_checkpointer=saver))
sys.stdout.write(json.dumps(found))

"""Replacements for names of PyTorch, and of optax, that have no counterpart: the expressions to write in their place.

Each is described on the page docs/how_to/coming_from_pytorch.md. Read by `missing_names.py`, when an error is printed.
"""

from collections.abc import Iterable
from typing import Final

_CONVOLUTION = "tl.lax.conv_general_dilated(x, w, strides, padding), of x [batch, channels, ..] and w [out, in, ..]"
_MAXIMA = "tl.lax.reduce_window(x, -tnp.inf, tl.lax.max, window, strides, padding)"
_MEANS = "tl.lax.reduce_window(x, 0.0, tl.lax.add, window, strides, padding) / elements of a window"
_NORMALIZED = 'tl.nn.standardize(x, axes, algorithm="stable") * scale + shift'
_RUNNING = (
    "tl.nn.standardize(x, axes, mean, variance) * scale + shift, with running means as a second result of the loss"
)
_ENTROPY = "-tnp.take_along_axis(tl.nn.log_softmax(scores), labels[:, None], 1).mean()"
_RECURRENCE = "tl.lax.scan(cell, state, xs), where cell(state, x) returns (state, output)"
_ATTENTION = (
    "tl.nn.dot_product_attention(query, key, value): its axes are [batch, time, heads, features], "
    "where PyTorch's are [batch, heads, time, features]"
)
_BLOCKS = "functions made of tl.nn.dot_product_attention, tl.nn.standardize and x @ w"
_CAST = (
    "tl.tree.map(lambda p: p.astype(tnp.bfloat16), params) at the top of the loss: gradients come back as float32, "
    "and bfloat16 needs no scaling of the loss"
)
_NOTHING = "nothing: only the gradients that tl.grad is asked for are computed, and none is accumulated"
_AVERAGED = "tl.tree.map(lambda mean, p: decay * mean + (1 - decay) * p, means, params) after each step"
_BATCHES = "a Python loop over slices of NumPy arrays, shuffled by tl.random.permutation(key, n)"

_LAYERS: Final = {
    "Linear linear": "x @ w + b: layers are functions, and parameters their arguments",
    "Module": "functions whose parameters are arguments, or tl.tree_util.register_dataclass",
    "Parameter ParameterList ParameterDict ModuleList ModuleDict": "a tree of arrays, which is an argument of the loss",
    "Sequential": "a function that calls one layer after the other",
    "Conv1d Conv2d Conv3d conv1d conv2d conv3d": _CONVOLUTION,
    "ConvTranspose1d ConvTranspose2d ConvTranspose3d conv_transpose1d conv_transpose2d conv_transpose3d": (
        "tl.lax.conv_transpose(x, w, strides, padding, dimension_numbers=...)"
    ),
    "MaxPool1d MaxPool2d MaxPool3d max_pool1d max_pool2d max_pool3d max_pool": _MAXIMA,
    "AvgPool1d AvgPool2d AvgPool3d avg_pool1d avg_pool2d avg_pool3d avg_pool": _MEANS,
    "AdaptiveAvgPool1d AdaptiveAvgPool2d adaptive_avg_pool1d adaptive_avg_pool2d": "x.mean((2, 3)), for one element",
    "BatchNorm1d BatchNorm2d BatchNorm3d batch_norm BatchNorm": _RUNNING,
    "LayerNorm GroupNorm InstanceNorm1d InstanceNorm2d layer_norm group_norm instance_norm": _NORMALIZED,
    "RMSNorm rms_norm": "x * tl.lax.rsqrt(tnp.mean(x * x, -1, keepdims=True) + eps) * scale",
    "normalize": "x / tnp.linalg.norm(x, axis=axis, keepdims=True)",
    "Dropout Dropout1d Dropout2d dropout alpha_dropout": (
        "tnp.where(tl.random.bernoulli(key, 1 - p, x.shape), x / (1 - p), 0)"
    ),
    "Embedding embedding": "table[indices]",
    "EmbeddingBag": "table[indices].sum(axis)",
    "MultiheadAttention": f"products with weights around {_ATTENTION}",
    "scaled_dot_product_attention": _ATTENTION,
    "RNN RNNCell LSTM LSTMCell GRU GRUCell": _RECURRENCE,
    "Transformer TransformerEncoder TransformerEncoderLayer TransformerDecoder TransformerDecoderLayer": _BLOCKS,
    "Flatten": "x.reshape(len(x), -1)",
    "Upsample interpolate": 'tl.image.resize(x, shape, "bilinear")',
    "functional": "tl.nn",
    "init": "tl.nn.initializers",
    **{
        name: f"tl.nn.{name.lower()}"
        for name in ("ReLU", "ReLU6", "ELU", "SELU", "CELU", "GELU", "SiLU", "Mish", "GLU")
    },
    "LeakyReLU": "tl.nn.leaky_relu",
    "Sigmoid": "tl.nn.sigmoid",
    "Tanh": "tnp.tanh",
    "Softplus": "tl.nn.softplus",
    "Softmax": "tl.nn.softmax(x, axis)",
    "LogSoftmax": "tl.nn.log_softmax(x, axis)",
}
_LOSSES: Final = {
    "cross_entropy CrossEntropyLoss softmax_cross_entropy": _ENTROPY,
    "softmax_cross_entropy_with_integer_labels": _ENTROPY,
    "nll_loss NLLLoss": "-tnp.take_along_axis(log_probabilities, labels[:, None], 1).mean()",
    "mse_loss MSELoss": "tnp.mean((x - y) ** 2)",
    "l1_loss L1Loss": "tnp.mean(tnp.abs(x - y))",
    "smooth_l1_loss SmoothL1Loss huber_loss HuberLoss": (
        "tnp.where(tnp.abs(x - y) < 1, 0.5 * (x - y) ** 2, tnp.abs(x - y) - 0.5).mean()"
    ),
    "binary_cross_entropy_with_logits BCEWithLogitsLoss": "tnp.mean(tl.nn.softplus(scores) - scores * labels)",
    "binary_cross_entropy BCELoss": "tnp.mean(tl.nn.softplus(scores) - scores * labels), of scores before the sigmoid",
    "kl_div KLDivLoss": "tl.scipy.special.rel_entr(p, q).sum()",
    "cosine_similarity": "tnp.sum(x * y, -1) / (tnp.linalg.norm(x, axis=-1) * tnp.linalg.norm(y, axis=-1))",
}
_TRAINING: Final = {
    "optim": "tl.optimizers",
    "SGD": "tl.optimizers.sgd(learning_rate)",
    "step": "updates, state = optimizer.update(gradient, state, params), then tl.optimizers.apply_updates(...)",
    "zero_grad": _NOTHING,
    "MultiSteps": "a sum of gradients over batches, tl.tree.map(tnp.add, total, gradient), before optimizer.update",
    "multi_transform": "tl.optimizers.chain of one tl.optimizers.masked(optimizer, mask) for each group",
    "inject_hyperparams": "tl.optimizers.adam(learning_rate) made inside the step, whose argument the learning rate is",
    "apply_if_finite": "tl.tree.map(lambda new, old: tnp.where(finite, new, old), params, before)",
    "clip_grad_norm_ clip_grad_norm": "tl.optimizers.chain(tl.optimizers.clip_by_global_norm(1.0), optimizer)",
    "clip_grad_value_": "tl.optimizers.chain(tl.optimizers.clip(1.0), optimizer)",
    "lr_scheduler": "a schedule as the learning rate: tl.optimizers.adam(schedule)",
    "CosineAnnealingLR": "tl.optimizers.cosine_decay_schedule(learning_rate, steps), as the learning rate",
    "CosineAnnealingWarmRestarts": "tl.optimizers.sgdr_schedule, as the learning rate",
    "StepLR": "tl.optimizers.exponential_decay(learning_rate, steps, gamma, staircase=True), as the learning rate",
    "ExponentialLR": "tl.optimizers.exponential_decay(learning_rate, steps, gamma), as the learning rate",
    "MultiStepLR": "tl.optimizers.piecewise_constant_schedule(learning_rate, {step: gamma}), as the learning rate",
    "LinearLR": "tl.optimizers.linear_schedule(first, last, steps), as the learning rate",
    "OneCycleLR": "tl.optimizers.cosine_onecycle_schedule(steps, peak), as the learning rate",
    "LambdaLR": "a function of the number of steps, as the learning rate",
    "ReduceLROnPlateau": "a learning rate that is an argument of the step",
    "amp autocast GradScaler": _CAST,
    "no_grad enable_grad set_grad_enabled inference_mode": f"{_NOTHING}; tl.lax.stop_gradient(x) keeps x constant",
    "utils": (
        "tl.optimizers.clip_by_global_norm for clip_grad_norm_, tl.checkpoint for utils.checkpoint, and a Python loop "
        "over batches for utils.data"
    ),
    "ema incremental_update swa_utils AveragedModel": _AVERAGED,
    "DataLoader Dataset TensorDataset": _BATCHES,
    "state_dict load_state_dict": "tl.save(path, params), tl.load(path, like=params): parameters are a tree",
    "Function": "tl.custom_vjp, or tl.custom_jvp",
}
_FUNCTIONS: Final = {
    "randperm": "tl.random.permutation(key, n)",
    "rand_like": "tl.random.uniform(key, x.shape, x.dtype)",
    "randn_like": "tl.random.normal(key, x.shape, x.dtype)",
    "multinomial": "tl.random.categorical(key, log_weights), or tl.random.choice(key, n, shape, p=weights)",
    "mm bmm": "x @ y",
    "addmm": "c + x @ y",
    "chunk": "tnp.split(x, n, axis), of n parts",
    "clamp clamp_min clamp_max": "tnp.clip(x, low, high)",
    "topk": "tl.lax.top_k(x, k)",
    "unbind": "tnp.unstack(x)",
    "index_select": "tnp.take(x, indices, axis)",
    "masked_fill": "tnp.where(mask, value, x)",
    "masked_select": "x[mask]",
    "repeat_interleave": "tnp.repeat(x, n, axis)",
    "is_tensor": "isinstance(x, tl.Array)",
    "numel": "x.size",
    "as_tensor": "tnp.asarray(data)",
    "FloatTensor": "tnp.array(data, tnp.float32)",
    "LongTensor": "tnp.array(data, tnp.int64)",
    "cdist": "tnp.linalg.norm(x[:, None] - y[None], axis=-1)",
    "set_num_threads": "taskset -c 0 python ... : XLA starts as many threads as the process may use processors",
}


def _by_name(*tables: dict[str, str]) -> Iterable[tuple[str, str]]:
    return [(name, text) for table in tables for names, text in table.items() for name in names.split()]


PYTORCH: Final = dict(_by_name(_LAYERS, _LOSSES, _TRAINING, _FUNCTIONS))

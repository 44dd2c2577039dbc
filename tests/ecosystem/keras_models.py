"""Models of Keras, built for batches of any size and trained for a few steps: convolution, recurrence, attention."""

import json
import os
import sys
from typing import Any

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np
from keras import layers

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(12, 6, 6, 2)).astype(np.float32)
SENTENCES = RNG.integers(0, 7, (12, 5)).astype(np.int32)
LABELS = RNG.integers(0, 3, 12).astype(np.int32)


def classifier() -> Any:
    image = keras.Input((6, 6, 2))
    x = layers.BatchNormalization()(layers.Conv2D(4, 3, strides=2, activation="relu")(image))
    x = layers.Dropout(0.2)(layers.Flatten()(layers.MaxPooling2D()(x)))
    return keras.Model(image, layers.Dense(3)(x))


def reader() -> Any:
    """Sentences of any length: an axis of the input besides that of the batch is open."""
    words = keras.Input((None,), dtype="int32")
    x = layers.LSTM(4, return_sequences=True)(layers.Embedding(7, 4)(words))
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 4)(x, x))
    return keras.Model(words, layers.Dense(3)(layers.GlobalAveragePooling1D()(x)))


def trained(build: Any, inputs: Any) -> dict[str, Any]:
    """Losses of the epochs, and results after them; the sizes that the model leaves open are None."""
    keras.utils.set_random_seed(0)
    model = build()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    fitted = model.fit(inputs, LABELS, epochs=3, batch_size=4, shuffle=False, verbose=0)
    results = np.asarray(model.predict(inputs[:2], verbose=0))
    return {"losses": fitted.history["loss"], "results": results.tolist(), "sizes": str(model.output_shape)}


json.dump({"images": trained(classifier, IMAGES), "sentences": trained(reader, SENTENCES)}, sys.stdout)

"""The epochs, steps and sizes of batches that shipped configs had before these followed from the treebank's size."""

_OPTIMIZATION: dict[str, dict[str, object]] = {
    "tiny": {"epochs": 28, "warmup_steps": 100, "dev_every": 4},
    "fast": {"epochs": 15, "warmup_steps": 100, "dev_every": 1},
    "bilstm": {"epochs": 34, "warmup_steps": 200, "dev_every": 1, "average_decay": 0.998},
    "transformer": {"epochs": 10, "warmup_steps": 200, "dev_every": 1},
}

FIXED: dict[str, dict[str, object]] = {
    config: {
        "data.batch_words": 1000,
        "optimization.steps": "auto",
        **{f"optimization.{name}": value for name, value in optimization.items()},
    }
    for config, optimization in _OPTIMIZATION.items()
}

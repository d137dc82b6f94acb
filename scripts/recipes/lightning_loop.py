"""A Lightning Trainer of one's own: its callbacks and checkpoints, over the module and the batches of treeparse.

The settings are those of a config, with numbers in the place of ``auto``. ``loss``, ``uas`` and ``las`` are logged.
"""

from tempfile import TemporaryDirectory

import demo
import pytorch_lightning as pl
from pytorch_lightning.callbacks import ModelCheckpoint

from treeparse.shipped import shipped_file
from treeparse.training import load_config, prepare

if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        options = {
            "output": folder,
            "data.train": demo.DATA / "demo-train.conllu",
            "data.dev": demo.DATA / "demo-dev.conllu",
            "model.encoder.hidden_size": 32,
            "optimization.epochs": 3,
            "optimization.steps": 1,
        }
        config = load_config(shipped_file("demo"), [f"--{name}={value}" for name, value in options.items()])
        training = prepare(config, quiet=True)
        best = ModelCheckpoint(folder, monitor="las", mode="max")
        trainer = pl.Trainer(**training.trainer_options, callbacks=[best], logger=False, enable_model_summary=False)
        trainer.fit(training.module, datamodule=training.data)
        print(f"best dev LAS {best.best_model_score:.2%} of {trainer.current_epoch} epochs")
        training.module.evaluated.save_pretrained(f"{folder}/model")

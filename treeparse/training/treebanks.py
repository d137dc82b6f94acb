"""The sentences that a run trains on, and those that it measures itself by."""

from collections.abc import Callable

from treeparse.core import DataError, TreeparseError
from treeparse.data.conllu import ConlluSentence
from treeparse.data.treebank import load_treebank
from treeparse.training.config import TrainConfig


def load_treebanks(
    config: TrainConfig, say: Callable[[str], None]
) -> tuple[list[ConlluSentence], list[ConlluSentence]]:
    """The training and the dev sentences; ``say`` is told what is left out or held out."""
    train = _load(config, "train", say)
    if config.data.dev is not None:
        return train, _load(config, "dev", say)
    if not config.data.dev_share:
        say("no data.dev: nothing is measured, and the last epoch makes the model (data.dev_share would hold some out)")
        return train, []
    train, dev = held_out(train, config.data.dev_share)
    say(f"no data.dev: {len(dev):,} of {len(train) + len(dev):,} training sentences are held out as the dev set")
    return train, dev


def held_out(sentences: list[ConlluSentence], share: float) -> tuple[list[ConlluSentence], list[ConlluSentence]]:
    """The sentences that stay, and the share of them that is held out, taken evenly from the whole list."""
    is_held = [int((place + 1) * share) > int(place * share) for place in range(len(sentences))]
    kept, held = ([s for s, mine in zip(sentences, is_held, strict=True) if mine is wanted] for wanted in (False, True))
    if not kept or not held:
        raise TreeparseError(
            f"data.dev_share {share} of {len(sentences)} training sentences leaves none to train on, or none to "
            "measure by: name a file as data.dev, or give another share."
        )
    return kept, held


def _load(config: TrainConfig, name: str, say: Callable[[str], None]) -> list[ConlluSentence]:
    patterns = getattr(config.data, name)
    skipped: list[DataError] = []
    sentences = load_treebank(
        [patterns] if isinstance(patterns, str) else patterns,
        partial=config.data.partial and name == "train",
        single_root=config.model.single_root,
        on_invalid=skipped.append if config.data.skip_invalid else None,
    )
    if skipped:
        say(f"left out {len(skipped):,} sentences of data.{name} that are not valid, the first: {skipped[0]}")
    return sentences

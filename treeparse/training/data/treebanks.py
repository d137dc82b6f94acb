"""The sentences that a run trains on, those that it measures itself by, and how the first are mixed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from treeparse.data.batches.draws import SmoothedDraw
from treeparse.data.batches.mixing import Mixture
from treeparse.data.conllu import ConlluSentence
from treeparse.data.features.indexer import has_tree
from treeparse.data.files import expand_paths
from treeparse.data.text.unlabelled import UnlabelledText
from treeparse.data.treebank import load_treebank
from treeparse.data.validation import NO_HEAD
from treeparse.errors import DataError, TreeparseError
from treeparse.objectives import Objective
from treeparse.sentence import Sentence
from treeparse.training.settings.config import DataConfig, TrainConfig

Say = Callable[[str], None]


@dataclass(frozen=True)
class Treebanks:
    """The sentences of a run.

    Attributes:
        train: those that it trains on, treebank after treebank.
        dev: those that it measures itself by.
        sizes: numbers of training sentences of each treebank that data.temperature tells from the others.
    """

    train: list[ConlluSentence]
    dev: list[ConlluSentence]
    sizes: list[int]


def load_treebanks(config: TrainConfig, say: Say) -> Treebanks:
    """The training and the dev sentences; ``say`` is told what is left out or held out."""
    patterns, share = _listed(config.data.train), config.data.dev_share
    apart = [patterns] if config.data.temperature is None else [[pattern] for pattern in patterns]
    banks = _load(config, "train", apart, say)
    train = [sentence for bank in banks for sentence in bank]
    if config.data.dev is not None:
        (dev,) = _load(config, "dev", [_listed(config.data.dev)], say)
        return Treebanks(train, dev, [*map(len, banks)])
    if not share:
        say("no data.dev: nothing is measured, and the last epoch makes the model (data.dev_share would hold some out)")
        return Treebanks(train, [], [*map(len, banks)])
    kept, dev = held_out(train, share)
    say(f"no data.dev: {len(dev):,} of {len(train):,} training sentences are held out as the dev set")
    places = [place for place, bank in enumerate(banks) for _ in bank]
    left = [place for place, is_held in zip(places, _are_held(len(train), share), strict=True) if not is_held]
    return Treebanks(kept, dev, [left.count(place) for place in range(len(banks))])


def files_remark(data: DataConfig, treebanks: Treebanks) -> str:
    """Name the files that a run trains on, and what it measures itself by."""
    measure = "nothing is measured"
    if data.dev is not None:
        measure = f"measured on {_files(data.dev)}"
    elif treebanks.dev:
        measure = f"measured on {len(treebanks.dev):,} sentences held out of them"
    text = "" if data.unlabelled is None else f" and the text of {_files(data.unlabelled)}"
    return f"training on {_files(data.train)}{text}; {measure}"


def _files(patterns: list[str] | str) -> str:
    """The files of some patterns: all, or the first and the last of more than three."""
    files = [str(path) for path in expand_paths(_listed(patterns))]
    return ", ".join(files) if len(files) <= 3 else f"{len(files)} files, {files[0]} to {files[-1]}"


def load_mixture(config: TrainConfig, treebanks: Treebanks, say: Say) -> Mixture:
    """What an epoch is made of; ``say`` is told how treebanks are drawn from, and of the first faulty sentence."""
    data, draw, lengths = config.data, None, [len(sentence.words) for sentence in treebanks.train]
    if data.temperature is not None:
        draw = SmoothedDraw(treebanks.sizes, data.temperature, config.seed)
        shares = (
            f"{count:,} of {size:,} sentences of {pattern}"
            for count, size, pattern in zip(draw.counts(), treebanks.sizes, data.train, strict=True)
        )
        say(f"an epoch draws {'; '.join(shares)}")
    if data.unlabelled is None:
        return Mixture(draw)
    words = sum(lengths) if draw is None else sum(lengths[place] for place in draw(0))
    text = UnlabelledText(
        _listed(data.unlabelled),
        words=round(data.unlabelled_ratio * words),
        max_words=data.unlabelled_max_words,
        on_invalid=_saying_once(say) if data.skip_invalid else None,
    )
    return Mixture(draw, text, data.mixing, data.unlabelled_ratio)


def check_objective(objective: Objective, train: Sequence[Sentence], *, unlabelled: bool) -> None:
    """Raise where an objective, or a term of it, is for sentences that are not there, or none for those that are.

    Args:
        objective: the loss.
        train: the training sentences.
        unlabelled: whether there is unlabelled text besides.
    """
    kinds, have_tree = objective.kinds(), [has_tree(sentence) for sentence in train]
    learns = {kind: [name for name, each in kinds.items() if each == kind] for kind in ("labelled", "unlabelled")}
    if learns["labelled"] and not any(have_tree):
        raise TreeparseError(
            f"The objective {learns['labelled'][0]} learns from trees, but data.train has none: every HEAD is _. Leave "
            "it out, for one that needs none, such as Entropy, or name files with trees."
        )
    if unlabelled and len(learns["labelled"]) == len(kinds):
        raise TreeparseError(
            f"The objective {learns['labelled'][0]} learns from trees alone, so that data.unlabelled is of no use: "
            "train with treeparse self-train, add an objective that needs no trees in a WeightedSum (treeparse config "
            "semisup shows some), or leave data.unlabelled out."
        )
    if learns["unlabelled"] and not unlabelled and all(have_tree):
        raise TreeparseError(
            f"The objective {learns['unlabelled'][0]} is for unlabelled sentences, but there are none: name files as "
            "data.unlabelled, or leave it out."
        )


def held_out(sentences: list[ConlluSentence], share: float) -> tuple[list[ConlluSentence], list[ConlluSentence]]:
    """The sentences that stay, and the share of them that is held out, taken evenly from the whole list."""
    is_held = _are_held(len(sentences), share)
    kept, held = ([s for s, mine in zip(sentences, is_held, strict=True) if mine is wanted] for wanted in (False, True))
    if not kept or not held:
        raise TreeparseError(
            f"data.dev_share {share} of {len(sentences)} training sentences leaves none to train on, or none to "
            "measure by: name a file as data.dev, or give another share."
        )
    return kept, held


def _are_held(count: int, share: float) -> list[bool]:
    return [int((place + 1) * share) > int(place * share) for place in range(count)]


def _listed(patterns: list[str] | str) -> list[str]:
    return [patterns] if isinstance(patterns, str) else patterns


def _load(config: TrainConfig, name: str, banks: list[list[str]], say: Say) -> list[list[ConlluSentence]]:
    """The sentences of several treebanks, each given by its patterns, of a setting of that name."""
    skipped: list[DataError] = []
    partial = config.data.partial and name == "train"
    try:
        loaded = [
            load_treebank(
                patterns,
                partial=partial,
                single_root=config.model.single_root,
                on_invalid=skipped.append if config.data.skip_invalid else None,
            )
            for patterns in banks
        ]
    except DataError as error:
        if name == "train" and not partial and error.problem.endswith(NO_HEAD):
            problem = f"{error.problem}; with data.partial true, training takes such words as open"
            raise DataError(problem, source=error.source, line=error.line, sent_id=error.sent_id) from error
        raise
    if skipped:
        say(f"left out {len(skipped):,} sentences of data.{name} that are not valid, the first: {skipped[0]}")
    return loaded


def _saying_once(say: Say) -> Callable[[DataError], None]:
    """What tells of the first faulty unlabelled sentence; they are left out as they are met, epoch after epoch."""
    said: list[DataError] = []

    def on_invalid(error: DataError) -> None:
        if not said:
            say(f"leaving out sentences of data.unlabelled that are not valid, the first: {error}")
            said.append(error)

    return on_invalid

"""The sentences of a run: the treebanks that it trains on, its dev set, and the mix of each epoch."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TypeVar

import torch

from treeparse.data.batches.mixing import SmoothedDraw, TrainingMix
from treeparse.data.batches.unlabelled import UnlabelledText
from treeparse.data.columns import titles_of
from treeparse.data.conllu import ConlluSentence, load_treebank
from treeparse.data.features.indexer import PLAIN_LABELS, any_tree, has_tags, has_tree, with_plain_labels
from treeparse.data.files import check_rereadable, expand_paths
from treeparse.data.statistics import missing_forms
from treeparse.data.validation import NO_HEAD
from treeparse.errors import DataError, TreeparseError
from treeparse.model import Parser
from treeparse.objectives import Objective
from treeparse.sentence import EMPTY, Sentence, missing_labels, nonprojective_words, tree_problem
from treeparse.training.train_config import DataConfig, TrainConfig
from treeparse.trees import distribution_named
from treeparse.trees.arc_conflicts import has_nonprojective_arc

Say = Callable[[str], None]
T = TypeVar("T")

MANY_LABELS = 1000
LONG = 8  # words of sentences that a dev set should not share with training


@dataclass(frozen=True)
class Treebanks:
    """The sentences of a run's files.

    Attributes:
        train: training sentences, treebank after treebank.
        dev: sentences of the dev set.
        sizes: number of training sentences of each treebank; one unless data.treebanks or data.temperature is set.
    """

    train: list[ConlluSentence]
    dev: list[ConlluSentence]
    sizes: list[int]

    @property
    def train_words(self) -> list[Sentence]:
        """Words and trees of the training sentences."""
        return [sentence.words for sentence in self.train]

    def name_of(self, index: int, text: UnlabelledText | None) -> str:
        """Return what messages call the sentence of an index of a batch, in the training sentences or in the text."""
        if text is not None and index >= len(self.train):
            return text.name(index - len(self.train))
        sentence = self.train[index]
        return sentence.sent_id or f"{sentence.source}:{sentence.line}"


def load_treebanks(config: TrainConfig, say: Say) -> Treebanks:
    """Load the training sentences and the dev set; ``say`` is told what is left out or held out."""
    share, data = config.data.dev_share, config.data
    treebanks = _load(config, "train", _groups(data, "train"), say)
    numbered = [(number, sentence) for number, treebank in enumerate(treebanks) for sentence in treebank]
    train = [sentence for _, sentence in numbered]
    if data.has_dev_files:
        dev = [*chain.from_iterable(_load(config, "dev", _groups(data, "dev"), say))]
        if not data.train_on_dev:
            _check_apart(train, dev)
        return Treebanks(train, dev, [*map(len, treebanks)])
    if not share:
        say("no data.dev: nothing is measured, and the last epoch makes the model (data.dev_share would hold some out)")
        return Treebanks(train, [], [*map(len, treebanks)])
    rest, dev = hold_out(numbered, share)
    say(f"no data.dev: {len(dev):,} of {len(train):,} training sentences are held out as the dev set")
    counts = Counter(number for number, _ in rest)
    sizes = [counts[number] for number in range(len(treebanks))]
    return Treebanks([sentence for _, sentence in rest], [sentence for _, sentence in dev], sizes)


def _check_apart(train: Sequence[ConlluSentence], dev: Sequence[ConlluSentence]) -> None:
    """Raise if most long sentences of the dev set are trees to train on, too; short ones recur in any text."""
    known = {sentence.words.forms for sentence in train if has_tree(sentence.words)}
    long = [sentence.words.forms for sentence in dev if len(sentence.words) >= LONG]
    shared = sum(forms in known for forms in long)
    if shared > len(long) / 2:
        raise TreeparseError(
            f"{shared:,} of {len(long):,} sentences of data.dev with {LONG} words or more are in data.train, too, so "
            "that their scores measure nothing: name other files, or set data.train_on_dev to true."
        )


def _groups(data: DataConfig, part: str) -> list[tuple[str | None, list[str]]]:
    """Return the treebanks of a part, train or dev: the name of each, if it has one, and its patterns of files."""
    named = [(name, listed(getattr(treebank, part))) for name, treebank in data.treebanks.items()]
    patterns = listed(getattr(data, part))
    if part == "train" and data.temperature is not None:
        return [*named, *((None, [pattern]) for pattern in patterns)]
    return [(name, group) for name, group in [*named, (None, patterns)] if group]


def patterns_of(data: DataConfig, part: str) -> list[str]:
    """Return the patterns of the files of a part, train or dev, of all treebanks."""
    return [pattern for _, patterns in _groups(data, part) for pattern in patterns]


def data_files(data: DataConfig) -> list[Path]:
    """Return the files of all settings of the data; raise if one is missing, or a pipe is named twice."""
    treebanks = [*patterns_of(data, "train"), *patterns_of(data, "dev")]
    return expand_paths([*treebanks, *listed(data.unlabelled), *listed(data.vectors)])


def check_rereadable_files(data: DataConfig, reason: str) -> None:
    """Raise for a file of the data that can be read only once; ``reason`` says why once is not enough."""
    for path in data_files(data):
        check_rereadable(path, reason)


def dev_sentences(config: TrainConfig, treebanks: Treebanks, train: Sequence[Sentence], say: Say) -> list[Sentence]:
    """Return words and trees of the dev set, with plain labels if no training sentence has a tree."""
    dev = [sentence.words for sentence in treebanks.dev]
    if config.init_from is not None or any_tree(train):
        return dev
    say(f"no tree in data.train: the labels are {' and '.join(PLAIN_LABELS)}, in data.dev too")
    return [with_plain_labels(words) for words in dev]


def say_missing(train: Sequence[Sentence], dev: Sequence[Sentence], say: Say) -> None:
    """Tell ``say`` how many words lack a form or a label, and what that means."""
    for name, sentences in (("train", train), ("dev", dev)):
        missing = sum(sentence.forms.count(EMPTY) for sentence in sentences)
        if clause := missing_forms(missing, sum(map(len, sentences))):
            say(f"data.{name}: {clause} Nothing is learnt from such forms")
    if clause := missing_labels(train):
        say(f"data.train: {clause}; training takes these labels as open")
    if clause := missing_labels(dev):
        has_labels = any(label != EMPTY for sentence in dev for label in sentence.labels or ())
        choice = "its LAS is that of its other words" if has_labels else "without any label, its UAS chooses the model"
        say(f"data.dev: {clause}; {choice}")


def say_columns(parser: Parser, train: Sequence[Sentence], say: Say) -> None:
    """Tell ``say`` which tags the model reads or learns. If there are none, say which ones the treebank has."""
    if read := titles_of(parser.indexer.features.tag_columns()):
        say(
            f"the model reads {read} besides the words: scores on data.dev rest on its tags, and input without them "
            "cannot be parsed"
        )
        return
    if learned := titles_of(parser.tag_names):
        say(
            f"the model reads the words alone and learns to predict {learned}, too (model.tags); --config tagged reads "
            "UPOS and FEATS, which its input must have"
        )
    elif unused := titles_of(column for column in ("upos", "feats") if has_tags(train, column)):
        say(
            f"data.train has {unused}, but the model reads the words alone: --config tagged reads UPOS and "
            "FEATS, which its input must have; --model.tags.upos 1 and --model.tags.feats 1 learn to predict them"
        )


def files_remark(data: DataConfig, treebanks: Treebanks) -> str:
    """Name the files that a run trains on, and those of its dev set."""
    measure = "nothing is measured"
    if data.has_dev_files:
        measure = f"measured on {_file_names(patterns_of(data, 'dev'))}"
    elif treebanks.dev:
        measure = f"measured on {len(treebanks.dev):,} sentences held out of them"
    if len({sentence.words.treebank for sentence in treebanks.dev}) > 1:
        measure += f", by the {f'scores of {data.dev_choice}' if data.dev_choice else 'mean over treebanks'}"
    text = "" if data.unlabelled is None else f" and the text of {_file_names(listed(data.unlabelled))}"
    names = [(f"{name}: " if name else "") + _file_names(patterns) for name, patterns in _groups(data, "train")]
    return f"training on {', '.join(names)}{text}; {measure}"


def _file_names(patterns: Sequence[str]) -> str:
    """Name the files of some patterns: all, or the first and the last of more than three."""
    files = [str(path) for path in expand_paths(patterns)]
    return ", ".join(files) if len(files) <= 3 else f"{len(files)} files, {files[0]} to {files[-1]}"


def load_training_mix(config: TrainConfig, treebanks: Treebanks, say: Say) -> TrainingMix:
    """Return what an epoch consists of; ``say`` is told the draw of each treebank and the first faulty sentence."""
    data, draw, lengths = config.data, None, [len(sentence.words) for sentence in treebanks.train]
    weights = [treebank.weight for treebank in data.treebanks.values()]
    if data.temperature is not None or len({*weights}) > 1:
        draw = SmoothedDraw(treebanks.sizes, data.temperature or 1.0, config.seed, weights)
        shares = (
            f"{count:,} of {size:,} sentences of {name}"
            for count, size, name in zip(
                draw.counts(), treebanks.sizes, data.treebanks or data.train or (), strict=True
            )
        )
        say(f"an epoch draws {'; '.join(shares)}")
    if data.unlabelled is None:
        return TrainingMix(draw)
    words = sum(lengths) if draw is None else sum(lengths[index] for index in draw(0))
    text = UnlabelledText(
        listed(data.unlabelled),
        words=round(data.unlabelled_ratio * words),
        max_words=data.unlabelled_max_words,
        on_invalid=_saying_once(say) if data.skip_invalid else None,
    )
    return TrainingMix(draw, text, data.mixing, data.unlabelled_ratio)


def say_doubts(config: TrainConfig, train: Sequence[Sentence], say: Say) -> None:
    """Tell ``say`` how many arcs of training trees no parse will have, and if there are very many labels."""
    trees, effect = f"model.trees {config.model.trees} lack", ""
    has_crossing = distribution_named(config.model.trees).tree_family.crossing
    if not has_crossing and not config.is_linear:
        effect = "; likelihood and margin take these words' heads as unknown"
    if has_crossing and config.model.decoder == "projective":
        has_crossing, trees = False, "model.decoder projective leaves out"
    if not has_crossing:
        counts = [_nonprojective_arcs(sentence.heads) for sentence in train if sentence.heads is not None]
        if sum(counts):
            say(
                f"crossing arcs, which {trees}: {sum(counts):,} in {sum(map(bool, counts)):,} training "
                f"sentences{effect}"
            )
    count = len({label for sentence in train if sentence.labels is not None for label in sentence.labels})
    if count > MANY_LABELS:
        say(
            f"the training trees have {count:,} different labels, where treebanks have 30 to 400: all of them have "
            "weights and scores, which takes much time and memory; is the column of labels (DEPREL) right?"
        )


def _nonprojective_arcs(heads: Sequence[int]) -> int:
    """Count the arcs of a tree, or of its known part, that no projective tree may have."""
    if -1 in heads:
        return int(has_nonprojective_arc(torch.tensor([[-1, *heads]])).sum())
    return 0 if tree_problem(heads, single_root=False) else len(nonprojective_words(heads))


def check_objective(objective: Objective, train: Sequence[Sentence], *, trees: str, unlabelled: bool) -> None:
    """Raise if an objective, or a term of it, finds no sentences to learn from, or if some sentences have no objective.

    Args:
        objective: the loss.
        train: the training sentences.
        trees: the model's trees, which must have the sums that the objective needs.
        unlabelled: whether there is unlabelled text, too.
    """
    if objective.needs_sums and not distribution_named(trees).tree_family.has_sums:
        raise TreeparseError(
            f"model.trees {trees} have no probabilities, which the objective {type(objective).__name__} needs: choose "
            "the objective treeparse.objectives.MeanField or MaxMargin, or model.trees siblings."
        )
    kinds, have_tree = objective.kinds(), [has_tree(sentence) for sentence in train]
    learns = {kind: [name for name, each in kinds.items() if each == kind] for kind in ("labelled", "unlabelled")}
    if learns["labelled"] and not any(have_tree):
        raise TreeparseError(
            f"The objective {learns['labelled'][0]} learns from trees, but data.train has none: every HEAD is _. "
            "Choose an objective that needs no trees, such as Entropy, or name files with trees."
        )
    if unlabelled and len(learns["labelled"]) == len(kinds):
        raise TreeparseError(
            f"The objective {learns['labelled'][0]} learns from trees alone, so that data.unlabelled is of no use: "
            "train with treeparse self-train, add an objective that needs no trees in a WeightedSum (treeparse config "
            "semisup shows some), or leave data.unlabelled out."
        )
    if learns["unlabelled"] and not unlabelled and all(have_tree):
        raise TreeparseError(
            f"The objective {learns['unlabelled'][0]} needs unlabelled sentences, but there are none: name files as "
            "data.unlabelled, or leave the objective out."
        )


def hold_out(items: list[T], share: float) -> tuple[list[T], list[T]]:
    """Divide the training sentences into those to train on and a share that is held out evenly from the whole list."""
    train, dev = [], []
    for index, item in enumerate(items):
        (dev if int((index + 1) * share) > int(index * share) else train).append(item)
    if not train or not dev:
        raise TreeparseError(
            f"data.dev_share {share} of {len(items)} training sentences leaves none to train on, or none to measure "
            "by: name a file as data.dev, or give another share."
        )
    return train, dev


def listed(patterns: list[str] | str | None) -> list[str]:
    """Return the patterns of a setting as a list."""
    return [patterns] if isinstance(patterns, str) else patterns or []


def _load(
    config: TrainConfig, name: str, groups: Sequence[tuple[str | None, list[str]]], say: Say
) -> list[list[ConlluSentence]]:
    """Load the treebanks of the part of a name, train or dev; their sentences know the names that treebanks have."""
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
            for _, patterns in groups
        ]
    except DataError as error:
        if name == "train" and not partial and error.problem.endswith(NO_HEAD):
            problem = f"{error.problem}; with data.partial true, training takes such words as open"
            raise DataError(problem, source=error.source, line=error.line, sent_id=error.sent_id) from error
        raise
    if skipped:
        say(f"left out {len(skipped):,} sentences of data.{name} that are not valid, the first: {skipped[0]}")
    names = [treebank for treebank, _ in groups]
    return [[_named(s, name) for s in sentences] for name, sentences in zip(names, loaded, strict=True)]


def _named(sentence: ConlluSentence, treebank: str | None) -> ConlluSentence:
    """Return a sentence that knows the name of its treebank."""
    return sentence if treebank is None else replace(sentence, words=replace(sentence.words, treebank=treebank))


def _saying_once(say: Say) -> Callable[[DataError], None]:
    """Return a handler that reports the first faulty unlabelled sentence and passes over all further ones."""
    said: list[DataError] = []

    def on_invalid(error: DataError) -> None:
        if not said:
            say(f"leaving out sentences of data.unlabelled that are not valid, the first: {error}")
            said.append(error)

    return on_invalid

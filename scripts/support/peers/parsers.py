"""The peers' own neural parsers, with random weights: from lists of words to trees, as they parse themselves.

Sizes, batches and decoders are the peers' defaults. A peer's tables are built of the very sentences that it parses, so
that no word is unknown; pretrained vectors, which would have to be downloaded, are random or left out. Weights that a
peer starts from zero, which would make all scores equal, are drawn too.
"""

import logging
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from scripts.support.peers.clones import bare_packages, import_supar, stand_in

from treeparse.sentence import Sentence

Tree = tuple[list[int], list[str]]  # heads and labels
BATCH_WORDS = 5000  # of either peer
SUPAR = ("supar", "supar.utils", "supar.models", "supar.models.dep", "supar.models.dep.biaffine")
SUPAR_BUCKETS = 8
STANZA_SEPARATE = 150  # words of a sentence that Stanza's pipeline does not batch with others


@dataclass(frozen=True)
class PeerParser:
    """A peer: ``parse`` does all, and within it calls ``scorer``: its encoder, and its scorers of arcs and labels."""

    name: str
    scorer: torch.nn.Module
    parse: Callable[[Sequence[Sentence]], list[Tree]]


def supar(directory: Path, sentences: Sequence[Sentence], labels: Sequence[str]) -> PeerParser:
    """``BiaffineDependencyParser`` of SuPar with words and characters: three BiLSTMs of 400 units each way.

    Its pretrained vectors, which it adds to those of its words, are left out: a look-up less. ``parse`` is its
    ``predict``, whose sentences become ids in this process, where SuPar starts 32 others for it.
    """
    stand_in("pathos", __path__=[])
    stand_in("pathos.multiprocessing")
    data, field, transform, model = (
        import_supar(directory, f"supar.{module}", SUPAR)
        for module in ("utils.data", "utils.field", "models.dep.biaffine.transform", "models.dep.biaffine.model")
    )
    words = field.Field("words", pad="<pad>", unk="<unk>", bos="<bos>", lower=True)
    chars = field.SubwordField("chars", pad="<pad>", unk="<unk>", bos="<bos>", fix_len=20)
    rels = field.Field("rels", bos="<bos>")
    conll = transform.CoNLL(FORM=(words, field.RawField("texts"), chars), DEPREL=rels)
    conll.eval()  # no trees are read

    forms = data.Dataset(conll, [list(sentence.forms) for sentence in sentences])
    words.build(forms, min_freq=2)
    chars.build(forms)
    vocabulary = import_supar(directory, "supar.utils.vocab", SUPAR).Vocab
    rels.vocab = vocabulary(Counter(labels), specials=rels.specials)
    network = model.BiaffineDependencyModel(
        n_words=len(words.vocab),
        n_rels=len(rels.vocab),
        n_chars=len(chars.vocab),
        char_pad_index=chars.pad_index,
        pad_index=words.pad_index,
        unk_index=words.unk_index,
    ).eval()
    draw_zeros(network)
    kmeans = import_supar(directory, "supar.utils.fn", SUPAR).kmeans

    @torch.no_grad()
    def parse(sentences: Sequence[Sentence]) -> list[Tree]:
        warnings.filterwarnings("ignore", "Using a non-tuple sequence")  # its padding; other imports undo filters
        dataset = data.Dataset(conll, [list(sentence.forms) for sentence in sentences])
        conll(dataset.sentences)
        buckets = dict(zip(*kmeans(dataset.sizes, SUPAR_BUCKETS), strict=True))
        sampler = data.Sampler(buckets, BATCH_WORDS)
        loader = data.DataLoader(conll, dataset=dataset, batch_sampler=sampler, collate_fn=data.collate_fn)
        trees: dict[int, Tree] = {}
        for batch in loader:
            ids, _, *feats = batch
            mask, lengths = batch.mask, (batch.lens - 1).tolist()
            mask[:, 0] = False
            found = network.decode(*network(ids, feats), mask, tree=True, proj=False)
            heads, names = ([part.tolist() for part in ids[mask].split(lengths)] for ids in found)
            for item, own, named in zip(batch.sentences, heads, names, strict=True):
                trees[item.index] = own, rels.vocab[named]
        return [trees[place] for place in range(len(sentences))]

    return PeerParser("SuPar", network, parse)


def stanza(directory: Path, sentences: Sequence[Sentence], labels: Sequence[str]) -> PeerParser:
    """Stanza's ``GraphParser`` by its training defaults: words, lemmas, tags, characters, vectors of 100 numbers.

    They are read by three highway BiLSTMs of 400 units each way. ``parse`` is what its pipeline's processor does,
    without its repair of trees with two subjects or objects. The documents are the lightest that its loader reads; the
    sentences have no lemmas, for which the forms stand in.
    """
    bare_packages(directory, ["stanza"])
    stand_in("requests")  # it and the next for downloads
    stand_in("platformdirs", user_cache_dir=lambda *names: "")
    from stanza.models import parser as program  # pyright: ignore[reportMissingImports]
    from stanza.models.common.pretrain import PretrainedWordVocab  # pyright: ignore[reportMissingImports]
    from stanza.models.common.utils import unsort  # pyright: ignore[reportMissingImports]
    from stanza.models.pos.vocab import WordVocab  # pyright: ignore[reportMissingImports]

    logging.getLogger("stanza").setLevel(logging.ERROR)  # importing the program set it
    settings = vars(program.build_argparse().parse_args(["--shorthand", "xx_bench"]))
    known = PretrainedWordVocab(sorted({form.lower() for sentence in sentences for form in sentence.forms}))
    pretrain = SimpleNamespace(vocab=known, emb=torch.randn(len(known), 100))
    vocabularies = program.DataLoader(StanzaDocument(sentences), BATCH_WORDS, settings, pretrain).vocab
    vocabularies["deprel"] = WordVocab([[[label] for label in labels]])
    trainer = program.GraphTrainer(settings, vocabularies, pretrain, device="cpu", build_optimizer=False)
    draw_zeros(trainer.model.eval())

    @torch.no_grad()
    def parse(sentences: Sequence[Sentence]) -> list[Tree]:
        loader = program.DataLoader(
            StanzaDocument(sentences),
            BATCH_WORDS,
            settings,
            pretrain,
            vocab=vocabularies,
            evaluation=True,
            sort_during_eval=True,
            min_length_to_batch_separately=STANZA_SEPARATE,
        )
        words = unsort([tree for batch in loader for tree in trainer.predict(batch)], loader.data_orig_idx)
        return [([int(head) for head, _ in tree], [label for _, label in tree]) for tree in words]

    return PeerParser("Stanza", trainer.model, parse)


@dataclass(frozen=True)
class StanzaDocument:
    """What Stanza's loader asks of a document: its words as rows of form, tags, features, lemma, head and label."""

    sentences: Sequence[Sentence]

    def get(self, columns: Sequence[str], as_sentences: bool) -> list[list[list[Any]]]:
        """New lists, which the loader changes; the sentences' heads and labels are kept from it."""
        return [list(map(list, zip(*self._columns(sentence), strict=True))) for sentence in self.sentences]

    def _columns(self, sentence: Sentence) -> list[Sequence[str]]:
        none = ["_"] * len(sentence)
        tags = [column or none for column in (sentence.upos, sentence.xpos, sentence.feats)]
        return [sentence.forms, *tags, sentence.forms, ["0"] * len(sentence), none]


def draw_zeros(network: torch.nn.Module) -> None:
    """Draw the matrices of a network that are all zero, as both peers' biaffine weights are before training."""
    for weight in network.parameters():
        if weight.dim() > 1 and not weight.any():
            torch.nn.init.normal_(weight, std=max(weight.shape) ** -0.5)

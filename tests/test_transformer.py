"""Parsers over pretrained transformers: built, trained, resumed, saved, loaded without the original files."""

import copy
import json
import pickle
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers.broken_runs import break_off
from helpers.forked import Forks
from helpers.parsers import parser_encoder
from helpers.pretrained import LETTERS, bert_folder, roberta_folder
from helpers.sentences import learnable_sentences
from huggingface_hub import constants
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from treeparse.batch import Batch
from treeparse.cli.main import main
from treeparse.data.batches.steps import ShareOfStep
from treeparse.data.conllu import load_treebank
from treeparse.data.features.subwords import SubwordFeatures
from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parser, ParserConfig
from treeparse.nn import TransformerConfig, TransformerEncoder
from treeparse.sentence import Sentence
from treeparse.training import load_config, train
from treeparse.training.parser_module import ParserModule

pytestmark = pytest.mark.usefixtures("one_thread")

TRAIN = learnable_sentences(30, seed=1)
HARD = [
    ["\x07", "\x00\x01"],
    ["🙂", "👩‍👩‍👧", "\ufe0f"],
    ["שלום", "עולם", "؟"],
    ["subword" * 80],
    ["nounverb"] * 120,  # several windows
    ["x" * 100_000, "."],
    ["\ud800", "[SEP]", "</s>"],
]
Folders = Mapping[str, Path]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    makers: dict[str, Callable[[Path], Path]] = {"bert": bert_folder, "roberta": roberta_folder}
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in makers.items()}


def built(folder: Path, *, std: float = 0.3, **settings: Any) -> Parser:
    """A parser whose scores differ: the weights on top of the model are far from the zeros at which they start."""
    encoder = TransformerConfig(model=str(folder), **settings)
    torch.manual_seed(2)
    parser = Parser.build(ParserConfig(encoder, arc_size=8, label_size=8), TRAIN).eval()
    for name, parameter in parser.scorer.named_parameters():
        if not name.startswith("encoder"):
            nn.init.normal_(parameter, std=std)
    return parser


def encoder_of(parser: Parser) -> TransformerEncoder:
    found = parser_encoder(parser)
    assert isinstance(found, TransformerEncoder)
    return found


@pytest.mark.parametrize("name", ["bert", "roberta"])
def test_everything_parses(folders: Folders, name: str) -> None:
    parser = built(folders[name], hidden_size=4)
    parses = parser.parse(HARD)
    for words, parse in zip(HARD, parses, strict=True):
        assert parse.tokens == tuple(words) and parse.heads.count(0) == 1


def test_lines_of_text_parse(folders: Folders, tmp_path: Path) -> None:
    """One sentence a line; empty lines, words of nothing but control characters, scripts from right to left."""
    built(folders["bert"]).save_pretrained(tmp_path / "model")
    lines = ["the noun", "", "\x01 \x07\x02", "", "", "שלום עולם ؟", "🙂 👩‍👩‍👧", "x" * 2000, "the verb " * 50]
    (tmp_path / "text.txt").write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    command = [str(tmp_path / "model"), str(tmp_path / "text.txt"), "-o", str(tmp_path / "out.conllu")]
    assert main(["predict", *command, "--format", "text", "--quiet"]) == 0
    found = [sentence.words for sentence in load_treebank([tmp_path / "out.conllu"])]
    assert [" ".join(words.forms) for words in found] == [line.strip() for line in lines if line]
    assert all(words.heads is not None and words.heads.count(0) == 1 for words in found)


def test_a_sentence_of_2000_words(folders: Folders) -> None:
    """Its vectors; how trees of so many words are found, no encoder has a say in."""
    parser = built(folders["bert"])
    words = [word for sentence in TRAIN * 20 for word in sentence.forms][:2000]
    batch = parser.collate([words])
    assert len(batch.features["subwords"]) > 60
    with torch.inference_mode():
        vectors = parser_encoder(parser)(batch)
    assert vectors.shape == (1, 2001, 16) and vectors.isfinite().all() and vectors.std(1).min() > 0.01


def test_a_sentence_that_fits_does_not_see_the_others(folders: Folders) -> None:
    parser = built(folders["roberta"], mixed_layers=2, hidden_size=4)
    alone, long = TRAIN[0], Sentence(tuple(["the", "noun", "and", "the", "verb"] * 20))
    with torch.inference_mode():
        [expected], both = (parser_encoder(parser)(parser.collate(each)) for each in ([alone], [long, alone]))
    torch.testing.assert_close(both[1, : len(alone) + 1], expected, atol=1e-5, rtol=1e-4)


def marginals(parser: Parser, batch: Batch) -> Tensor:
    with torch.inference_mode():
        return parser.distribution(batch).marginals.sum(-1)


def test_windows_agree_with_the_whole(tmp_path: Path) -> None:
    """As for a model to which words say more than their places and what is far away: here these are made to."""
    folder, stream = bert_folder(tmp_path / "bert", limit=128), random.Random(0)
    weights = load_file(folder / "model.safetensors")
    for name in weights:
        weights[name] *= 0.03 if "position" in name else 0.1 if "attention.output.dense" in name else 1
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    parser = built(folder, std=0.6)
    sentences = [Sentence(tuple(stream.choice(LETTERS) + stream.choice(LETTERS) for _ in range(30))) for _ in range(8)]
    whole, features = parser.collate(sentences), parser.indexer.features
    assert isinstance(features, SubwordFeatures)
    parser.indexer.features = features.windowed(48, 24)
    parts = parser.collate(sentences)
    assert [len(batch.features["subwords"]) for batch in (whole, parts)] == [8, 16]
    expected, found = marginals(parser, whole), marginals(parser, parts)
    words = whole.word_mask().unsqueeze(1).expand_as(expected)
    assert 0 < (found - expected)[words].abs().mean() < 0.02
    trees = [[parse.heads for parse in parser.parse_batch(batch, sentences)] for batch in (whole, parts)]
    same = [one == other for pair in zip(*trees, strict=True) for one, other in zip(*pair, strict=True)]
    assert sum(same) >= 0.9 * len(same)


LOADER = """
import json, socket, sys
def cut(*args, **kwargs):
    raise OSError("the network is cut off")
socket.socket.connect = socket.getaddrinfo = cut
from treeparse.model import Parser
parser = Parser.from_pretrained(sys.argv[1])
parses = parser.parse(json.loads(sys.argv[2]))
print(json.dumps([[p.heads, p.labels, p.log_prob.hex(), p.score.hex()] for p in parses]))
"""


def test_a_saved_model_loads_without_the_original_files_and_the_network(
    folders: Folders, tmp_path: Path, forks: Forks
) -> None:
    original = shutil.copytree(folders["roberta"], tmp_path / "original")
    parser = built(original, mixed_layers=2, hidden_size=4, window=20, overlap=4)
    parser.save_pretrained(tmp_path / "model")
    shutil.rmtree(original)
    texts = [list(sentence.forms) for sentence in TRAIN[:5]] + [["the", "noun", "verb,"] * 20, HARD[0], HARD[2]]
    expected = [[p.heads, p.labels, p.log_prob.hex(), p.score.hex()] for p in parser.parse(texts)]
    done = forks.run(LOADER, tmp_path / "model", json.dumps(texts))
    assert done.returncode == 0, done.stderr
    assert done.stdout == json.dumps(expected) + "\n" and not done.stderr


def test_weights_and_settings_of_a_saved_model(folders: Folders, tmp_path: Path) -> None:
    parser = built(folders["bert"], mixed_layers=0, hidden_size=4, layers=2)
    assert not any("pooler" in name for name, _ in parser.named_parameters())
    originals = load_file(folders["bert"] / "model.safetensors")
    for name, weight in encoder_of(parser).transformer.state_dict().items():
        assert torch.equal(weight, originals[name])
    parser.save_pretrained(tmp_path / "model")
    loaded = Parser.from_pretrained(tmp_path / "model")
    assert loaded.config == parser.config and loaded.indexer.to_json() == parser.indexer.to_json()
    assert loaded.parse(TRAIN) == parser.parse(TRAIN)


def changed(folder: Path, target: Path, name: str, change: Callable[[dict[str, Any]], object]) -> Path:
    """A copy of a model folder in which a file holds something else, by whoever can write its digests anew."""
    shutil.copytree(folder, target)
    for file in ("config.json", name):
        data = json.loads((target / file).read_bytes())
        data.pop("digests", None)
        if file == name:
            change(data)
        (target / file).write_text(json.dumps(data), encoding="utf-8")
    return target


@pytest.fixture(scope="module")
def saved(folders: Folders, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "model"
    built(folders["bert"]).save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"auto_map": {"AutoModel": "evil--model.Evil"}}, "auto_map"),
        ({"_attn_implementation": "evil/kernel"}, "_attn_implementation"),
        ({"model_type": "../evil"}, "must be one that the library transformers has, got '../evil'"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers must be at most 1,000, got 1e.09"),
        ({"num_hidden_layers": 2}, "do not fit its config"),
        ({"vocab_size": 50}, "the model has 50"),
        ({"max_position_embeddings": 32}, "windows of up to 32: take"),
        ({"hidden_act": ["relu"]}, "hidden_act must be text, got"),
    ],
)
def test_a_hostile_config_is_a_sentence(saved: Path, tmp_path: Path, change: dict[str, Any], words: str) -> None:
    def apply(config: dict[str, Any]) -> None:
        config["encoder"]["init_args"]["architecture"] |= change

    with pytest.raises(TreeparseError, match=words):
        Parser.from_pretrained(changed(saved, tmp_path / "model", "config.json", apply))


@pytest.mark.parametrize(
    "change",
    [
        lambda v: v["features"]["tokenizer"].update(model={"type": "WordPiece"}),
        lambda v: v["features"]["tokenizer"].pop("pre_tokenizer"),
        lambda v: v["features"]["special"].update(unknown="[UNK]"),
        lambda v: v["features"].update(limit=10**6),
        lambda v: v["features"].pop("special"),
    ],
)
def test_a_damaged_tokenizer_is_a_sentence(saved: Path, tmp_path: Path, change: Callable[[Any], object]) -> None:
    with pytest.raises(TreeparseError, match=r"make no parser|take both files from the same model"):
        Parser.from_pretrained(changed(saved, tmp_path / "model", "vocabulary.json", change))


def test_models_that_cannot_be_used_are_sentences(folders: Folders, tmp_path: Path) -> None:
    def refused(folder: str | Path, **settings: Any) -> str:
        with pytest.raises(TreeparseError) as caught:
            Parser.build(ParserConfig(TransformerConfig(model=str(folder), **settings)), TRAIN)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    def copy(name: str, **config: Any) -> Path:
        folder = shutil.copytree(folders["bert"], tmp_path / name)
        data = json.loads((folder / "config.json").read_bytes())
        (folder / "config.json").write_text(json.dumps(data | config))
        return folder

    assert "encoder.model must not be empty" in refused("")
    assert "There is no folder" in refused(tmp_path / "nothing")
    assert "has no config.json" in refused(tmp_path)
    assert "it needs custom code (auto_map)" in refused(copy("code", auto_map={"AutoModel": "modeling.Evil"}))
    assert "encoder.revision must be empty for a folder" in refused(folders["bert"], revision="main")
    assert "encoder.window must be at most 64, the model's limit, got 80" in refused(folders["bert"], window=80)
    pickled = copy("pickled")
    (pickled / "model.safetensors").unlink()
    torch.save({}, pickled / "pytorch_model.bin")
    assert "its weights cannot be read" in refused(pickled)
    lacking = copy("lacking")
    weights = load_file(lacking / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_file(weights, lacking / "model.safetensors", {"format": "pt"})
    assert "its weights lack encoder.layer.1.output.dense.weight" in refused(lacking)
    (lacking / "config.json").write_text("{")
    assert "config.json cannot be read" in refused(lacking)
    tokens = copy("tokens")
    (tokens / "tokenizer.json").write_text("{}")
    assert "its tokenizer cannot be read" in refused(tokens)


def test_a_model_of_the_hub(folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose files lie in the cache: the commit is pinned, and nobody is asked. Of another one nothing lies there."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    commit, repository = "0123456789abcdef0123456789abcdef01234567", tmp_path / "models--org--tiny"
    shutil.copytree(folders["bert"], repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    encoder = built(Path("org/tiny")).config.encoder
    assert isinstance(encoder, TransformerConfig)
    assert (encoder.model, encoder.revision) == ("org/tiny", commit)
    assert Parser.build(ParserConfig(encoder), TRAIN).config.encoder == encoder
    with pytest.raises(
        TreeparseError, match=r"'org/other', which is not a folder and cannot be downloaded .*hf download org/other"
    ):
        built(Path("org/other"))


# Training.


@pytest.fixture
def settings(tiny_config: Path, folders: Folders) -> list[str]:
    """Options by which a tiny run fine-tunes the BERT."""
    options = {
        "model": folders["bert"],
        "mixed_layers": 2,
        "layer_dropout": 0.3,
        "learning_rate_factor": 0.1,
        "layer_decay": 0.5,
        "unfreeze_at": 0.3,
    }
    return [
        "--data.batch_words=120",
        "--model.encoder=TransformerConfig",
        *(f"--model.encoder.{name}={value}" for name, value in options.items()),
    ]


def test_a_broken_and_resumed_run_ends_as_an_unbroken_one(
    tiny_config: Path, settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The layers start to learn one by one in between."""
    settings = [*settings, "--optimization.epochs=2", "--model.encoder.unfreeze_at=0.7"]
    rates: list[list[float]] = []
    step = ParserModule.training_step

    def watched(self: ParserModule, share: ShareOfStep, number: int) -> torch.Tensor:
        rates.append([group["lr"] for group in self.trainer.optimizers[0].param_groups])
        return step(self, share, number)

    monkeypatch.setattr(ParserModule, "training_step", watched)
    unbroken = train(load_config(tiny_config, [*settings, "--output", str(tmp_path / "unbroken")]), quiet=True)
    assert len({len(each) for each in rates}) == 1
    for each in rates:  # the parser's, and of the layers from the last one down to the embeddings
        assert each == pytest.approx([each[0] * share for share in (1.0, 0.1, 0.05, 0.025, 0.0125)])
    monkeypatch.setattr(ParserModule, "training_step", step)

    break_off(lambda: train(load_config(tiny_config, settings), quiet=True), 1, 2, monkeypatch)
    resumed = train(load_config(tiny_config, settings), resume=True, quiet=True)
    found, expected = (load_file(model / "model.safetensors") for model in (resumed, unbroken))
    assert found.keys() == expected.keys() and all(torch.equal(found[name], expected[name]) for name in found)
    state = torch.load(tmp_path / "run" / "checkpoints" / "last.ckpt", weights_only=True)
    assert [len(group["params"]) > 0 for group in state["optimizer_states"][0]["param_groups"]] == [True] * 5


def test_a_frozen_model_stays_as_it_is_and_another_run_starts_from_it(
    tiny_config: Path, settings: list[str], folders: Folders, tmp_path: Path
) -> None:
    frozen = ["--model.encoder.frozen=true", "--model.encoder.unfreeze_at=0", "--optimization.average_decay=null"]
    one = [*settings, *frozen, "--optimization.epochs=1"]
    model = train(load_config(tiny_config, one), quiet=True)
    originals = load_file(folders["bert"] / "model.safetensors")
    first = Parser.from_pretrained(model)
    for name, weight in encoder_of(first).transformer.state_dict().items():
        assert torch.equal(weight, originals[name])
    assert encoder_of(first).root.std() > 0 and first.parse(TRAIN)

    more = [*one, "--model.encoder.frozen=false", "--model.encoder.model=", "--model.encoder.window=16"]
    again = [*more, "--init_from", str(model), "--output", str(tmp_path / "more")]
    second = Parser.from_pretrained(train(load_config(tiny_config, again), quiet=True))
    config = second.config.encoder
    assert isinstance(config, TransformerConfig) and config.model == folders["bert"].name and not config.frozen
    assert isinstance(second.indexer.features, SubwordFeatures) and second.indexer.features.window == 16
    moved = encoder_of(second).transformer.state_dict()
    assert not torch.equal(
        moved["encoder.layer.2.output.dense.weight"], originals["encoder.layer.2.output.dense.weight"]
    )
    with pytest.raises(TreeparseError, match=r"model.encoder.mixed_layers is 2 there and 1 here"):
        options = [*again, "--model.encoder.mixed_layers=1", "--output", str(tmp_path / "other")]
        train(load_config(tiny_config, options), quiet=True)


def test_batches_hold_as_many_subwords_as_the_config_says(
    tiny_config: Path, settings: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With workers, to which the tokenizer must travel."""
    seen: list[Batch] = []

    def stopped(self: ParserModule, share: ShareOfStep, number: int) -> None:
        seen.append(share.batch)
        raise TreeparseError("That is enough.")

    monkeypatch.setattr(ParserModule, "training_step", stopped)
    more = ["--data.batch_words=60", "--data.workers=1", "--data.start_method=fork"]
    with pytest.raises(TreeparseError, match="enough"):
        train(load_config(tiny_config, [*settings, *more]), quiet=True)
    [batch] = seen
    assert 30 < batch.features["subwords"].numel() <= 60 and batch.num_words < 30


@pytest.mark.parametrize(
    "settings",
    [{}, {"frozen": True}, {"lora_rank": 2}, {"gradient_checkpointing": True}],
    ids=["plain", "frozen", "adapters", "checkpointed"],
)
@pytest.mark.parametrize("precision", ["32", "int8"])
def test_a_parser_that_has_parsed_can_be_pickled(folders: Folders, settings: dict[str, Any], precision: str) -> None:
    parser = built(folders["bert"], mixed_layers=2, **settings).use_precision(precision)
    expected = parser.parse(TRAIN)
    for equal in (pickle.loads(pickle.dumps(parser)), copy.deepcopy(parser)):
        for found in (equal, pickle.loads(pickle.dumps(equal))):
            assert found.parse(TRAIN) == expected
    flags = [parameter.requires_grad for parameter in parser.parameters()]
    assert [parameter.requires_grad for parameter in equal.parameters()] == flags
    assert [module.training for module in equal.modules()] == [module.training for module in parser.modules()]
    assert parser.parse(TRAIN) == expected


def test_loading_draws_no_random_numbers(folders: Folders, tmp_path: Path) -> None:
    built(folders["bert"], hidden_size=4, lora_rank=2).save_pretrained(tmp_path / "model")
    states = torch.random.get_rng_state(), random.getstate(), str(np.random.get_state())
    Parser.from_pretrained(tmp_path / "model")
    Ensemble.from_pretrained([tmp_path / "model"])
    assert torch.equal(torch.random.get_rng_state(), states[0])
    assert (random.getstate(), str(np.random.get_state())) == states[1:]


def test_parsing_in_int8_first_changes_no_other_parse(folders: Folders) -> None:
    """The library's hooks in the int8 copy must not run in the model, whose layers they would collect twice."""
    expected = built(folders["bert"], mixed_layers=3).parse(TRAIN, probabilities=True)
    parser = built(folders["bert"], mixed_layers=3).use_precision("int8")
    parser.parse(TRAIN)
    assert parser.use_precision("32").parse(TRAIN, probabilities=True) == expected

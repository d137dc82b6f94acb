"""Columns that a model reads: tags, single features and keys of MISC, from a file to embeddings, and in a run."""

from pathlib import Path
from typing import Any

import conllu
import pytest
from helpers.commands import Capture
from helpers.parsers import parser_encoder

from treeparse import Parser
from treeparse.cli.main import main
from treeparse.data.columns import column_named
from treeparse.data.conllu import read_conllu
from treeparse.data.mapping import as_sentence
from treeparse.errors import TreeparseError
from treeparse.sentence import Sentence

WORDS = Sentence(
    ("Die", "Katze", "schläft"),
    feats=("Case=Nom|Gender=Fem", "Gender=Fem", "_"),
    misc=("Gloss=the", "SpaceAfter=No|Gloss=cat", "_"),
)


def test_values_of_columns() -> None:
    assert column_named("feats.Case").read(WORDS) == ["Nom", "_", "_"]
    assert column_named("misc.Gloss").read(WORDS) == ["the", "cat", "_"]
    assert column_named("feats").read(WORDS) == WORDS.feats
    with pytest.raises(TreeparseError, match="The model reads UPOS, but the sentence that starts with 'Die Katze"):
        column_named("upos").read(WORDS)
    with pytest.raises(TreeparseError, match="reads Gloss in MISC, but the sentence that starts with 'a'"):
        column_named("misc.Gloss").read(Sentence(("a",)))
    with pytest.raises(
        TreeparseError, match=r"Unknown column 'lemma', which is no feats\.NAME .*: choose one of upos, xpos, feats"
    ):
        column_named("lemma")


def with_glosses(path: Path) -> None:
    """Give every word a gloss that tells its label."""
    rows = [line.split("\t") for line in path.read_text().split("\n")]
    glossed = [[*row[:9], f"Gloss={row[7]}|Other=x"] if len(row) == 10 else row for row in rows]
    path.write_text("\n".join(map("\t".join, glossed)))


def test_a_key_of_misc_is_embedded_and_learned_from(tiny_config: Path, tmp_path: Path, capsys: Capture) -> None:
    for name in ("train", "dev"):
        with_glosses(tmp_path / f"{name}.conllu")
    options = ["--config", str(tiny_config), "--model.encoder.tags", "[misc.Gloss]"]
    assert main(["train", "--quiet", *options]) == 0
    parser = Parser.from_pretrained(tmp_path / "run")
    encoder: Any = parser_encoder(parser)
    table = encoder.embedding.tags["misc=Gloss"]
    sentences = list(read_conllu(tmp_path / "dev.conllu"))
    assert len(table.weight) == 3 + len(parser.label_names)
    [known] = parser.parse(sentences[:1])
    bare = Sentence(sentences[0].words.forms, sentences[0].words.upos, misc=("_",) * len(sentences[0].words))
    assert parser.parse([bare])[0].log_prob != known.log_prob
    with pytest.raises(TreeparseError, match="reads Gloss in MISC"):
        parser.parse([["a", "b"]])
    source, out = str(tmp_path / "dev.conllu"), str(tmp_path / "out.conllu")
    assert main(["predict", "-q", str(tmp_path / "run"), source, "-o", out]) == 0
    assert [s.words.heads for s in read_conllu(out)] == [parse.heads for parse in parser.parse(sentences)]


def test_a_run_depends_on_the_columns_that_it_reads_and_no_others(
    tiny_config: Path, tmp_path: Path, capsys: Capture
) -> None:
    for name in ("train", "dev"):
        with_glosses(tmp_path / f"{name}.conllu")
    assert main(["train", "--quiet", "--config", str(tiny_config), "--model.encoder.tags", "[misc.Gloss]"]) == 0
    resumed, train = ["train", "--quiet", "--resume", str(tmp_path / "run")], tmp_path / "train.conllu"
    train.write_text(train.read_text().replace("Other=x", "Other=y"))
    assert main(resumed) == 0
    train.write_text(train.read_text().replace("Gloss=root", "Gloss=main"))
    assert main(resumed) == 2
    assert "the sentences of data.train changed" in capsys.readouterr().err


def test_token_lists_keep_misc() -> None:
    text = "1\ta\t_\t_\t_\t_\t0\troot\t_\tGloss=x|Flag\n\n"
    [tokens] = conllu.parse(text)
    assert as_sentence(tokens).misc == ("Gloss=x|Flag",)

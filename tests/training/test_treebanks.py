import json
from pathlib import Path

import pytest

from treeparse.data.conllu import load_treebank
from treeparse.errors import TreeparseError
from treeparse.sentence import Sentence
from treeparse.shipped import shipped_file
from treeparse.training import load_config
from treeparse.training.treebanks import hold_out, load_training_mix, load_treebanks, say_doubts


def test_a_share_is_held_out_evenly(tmp_path: Path, tiny_config: Path) -> None:
    sentences = load_treebank([tmp_path / "train.conllu"])
    kept, held = hold_out(sentences, 0.25)
    assert [sentences.index(sentence) for sentence in held] == list(range(3, 40, 4))
    assert [sentence for sentence in sentences if sentence not in held] == kept
    for share in (0.1, 0.33, 0.9):
        kept, held = hold_out(sentences, share)
        assert len(held) == int(40 * share) and len(kept) + len(held) == 40
    with pytest.raises(TreeparseError, match=r"data\.dev_share 0\.01 of 40"):
        hold_out(sentences, 0.01)


def test_a_temperature_tells_treebanks_apart(tmp_path: Path, tiny_config: Path) -> None:
    said: list[str] = []
    both = [str(tmp_path / "train.conllu"), str(tmp_path / "dev.conllu")]
    options = ["--data.train", json.dumps(both), "--data.dev=null", "--data.dev_share=0.25"]
    assert load_treebanks(load_config(tiny_config, options), said.append).sizes == [39]
    options += ["--data.temperature", "4"]
    found = load_treebanks(load_config(tiny_config, options), said.append)
    assert (found.sizes, len(found.train), len(found.dev)) == ([30, 9], 39, 13)
    assert [sentence.source for sentence in found.train] == [both[0]] * 30 + [both[1]] * 9
    draw = load_training_mix(load_config(tiny_config, options), found, said.append).draw
    assert draw is not None and sum(place < 30 for place in draw(0)) == 22  # 2.3403 and 1.7321 as shares of 39


@pytest.mark.parametrize(
    ("config", "options", "reason"),
    [
        ("linear", [], "model.trees projective lack"),
        ("ge", [], "model.trees projective lack"),
        ("second_order", [], "model.trees siblings lack"),
        ("fast", ["--model.decoder=projective"], "model.decoder projective leaves out"),
        ("linear", ["--model.trees=nonprojective"], None),
        ("fast", [], None),
    ],
)
def test_arcs_that_no_parse_will_have_are_counted(config: str, options: list[str], reason: str | None) -> None:
    crossing = Sentence(("a",) * 4, heads=(0, 1, 1, 2), labels=("root", "x", "x", "x"))
    said: list[str] = []
    files = ["--data.train=train.conllu", "--data.dev=dev.conllu", "--output=run"]
    say_doubts(load_config(shipped_file(config), [*files, *options]), [crossing, crossing], said.append)
    assert [line.partition(" sentences")[0] for line in said] == (
        [] if reason is None else [f"crossing arcs, which {reason}: 2 in 2 training"]
    )

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from treeparse.cli.configs import shipped_configs
from treeparse.data.batches.batching import BucketBatchSampler
from treeparse.data.batches.mixing import Mixture
from treeparse.data.text.unlabelled import UnlabelledText
from treeparse.errors import TreeparseError
from treeparse.names import Mixing
from treeparse.training.settings.config import DataConfig, OptimizationConfig, TrainConfig, TrainerConfig
from treeparse.training.settings.reading import load_config
from treeparse.training.settings.resolve import plan_remarks, planned, settled, workload

AUTO_OPTIMIZATION = OptimizationConfig()


def config(dev: str | None = "dev.conllu", optimization: OptimizationConfig = AUTO_OPTIMIZATION) -> TrainConfig:
    data, trainer = DataConfig("train.conllu", dev), TrainerConfig("cpu", "auto")
    return TrainConfig(data, "run", optimization=optimization, trainer=trainer)


def lengths(words: int) -> list[int]:
    """Sentences of 5, 10, ..., 40 words, so many words in all."""
    cycle = list(range(5, 41, 5))
    return cycle * (words // sum(cycle))


@pytest.mark.parametrize("words", [1_000, 10_000, 20_000, 40_000, 200_000, 1_000_000])
def test_every_treebank_gets_its_epochs_and_its_steps(words: int) -> None:
    plan = planned(config(), lengths(words))
    batches = BucketBatchSampler(
        lengths(words), max_words=settled(plan.data.batch_words), max_squared=plan.data.batch_squared
    )
    optimization = plan.optimization
    epochs, every = settled(optimization.epochs), settled(optimization.dev_every)
    steps = epochs * len(batches)
    assert epochs >= 14 and steps == settled(optimization.steps) >= 3500
    assert epochs == 14 or (epochs - every) * len(batches) < 3500, "no more than are needed"
    assert epochs % every == 0 and 10 <= epochs // every <= 30
    assert 0 < settled(optimization.warmup_steps) < 0.1 * steps
    assert 0.01 * steps < 1 / (1 - (settled(optimization.average_decay) or 0)) < 0.1 * steps
    assert 0.2 * epochs < (settled(optimization.patience) or 0) < 0.5 * epochs
    assert 200 <= settled(plan.data.batch_words) <= 1000
    assert plan.trainer.precision in ("32-true", "bf16-mixed")


def test_batches_grow_with_the_treebank() -> None:
    sizes = [settled(planned(config(), lengths(words)).data.batch_words) for words in (10_000, 40_000, 200_000)]
    assert sizes == sorted(set(sizes))


def test_what_is_given_stays() -> None:
    optimization = OptimizationConfig(epochs=7, dev_every=1, patience=3, warmup_steps=0, average_decay=None)
    given = config(optimization=optimization)
    given = replace(given, data=replace(given.data, batch_words=123), trainer=TrainerConfig("cpu", "32-true"))
    plan = planned(given, lengths(10_000))
    assert replace(plan, optimization=replace(plan.optimization, steps="auto")) == given


@pytest.mark.parametrize(
    ("given", "epochs"),
    [({"epochs": 2}, 2), ({"steps": 401}, 5), ({"epochs": 9, "steps": 500}, 9), ({"epochs": 3, "steps": 500}, 5)],
)
def test_of_epochs_and_steps_what_is_given_counts(given: dict[str, int], epochs: int) -> None:
    given_config = config(optimization=replace(OptimizationConfig(dev_every=1), **given))
    given_config = replace(given_config, data=replace(given_config.data, batch_words=200, batch_squared=None))
    plan = planned(given_config, [19] * 1000)  # 20 nodes each: ten sentences a batch, 100 batches an epoch
    assert plan.optimization.epochs == epochs


def test_a_planned_config_stays_as_it_is() -> None:
    plan = planned(config(), lengths(20_000))
    assert planned(plan, lengths(20_000)) == plan


def test_a_run_that_goes_on_keeps_what_it_chose() -> None:
    before = planned(config(), lengths(20_000))
    longer = config(optimization=replace(AUTO_OPTIMIZATION, steps=9000))
    plan = planned(longer, lengths(20_000), before.to_dict())
    assert settled(plan.optimization.epochs) > settled(before.optimization.epochs)
    changed = {"epochs", "steps"}
    for name, value in vars(before.optimization).items():
        assert name in changed or getattr(plan.optimization, name) == value
    assert plan.data == before.data


def test_a_short_run_is_not_cut_shorter() -> None:
    plan = planned(config(optimization=OptimizationConfig(epochs=4)), lengths(20_000))
    assert (settled(plan.optimization.patience) or 0) >= 4


def test_no_patience_without_a_dev_set() -> None:
    assert planned(config(dev=None), lengths(20_000)).optimization.patience is None
    held = config(dev=None)
    held = replace(held, data=replace(held.data, dev_share=0.1))
    assert planned(held, lengths(20_000)).optimization.patience


def test_epochs_are_whole_measurements() -> None:
    optimization = OptimizationConfig(epochs=10, dev_every=4)
    assert planned(config(optimization=optimization), lengths(5_000)).optimization.epochs == 12


SIZES = {"small": 20_000, "large": 300_000}


@pytest.mark.parametrize(
    ("name", "passes", "steps"),
    [("tiny", 28, 5000), ("fast", 15, 3000), ("bilstm", 34, 3500), ("transformer", 10, 2500), ("frozen", 30, 3000)],
)
def test_shipped_configs_fit_any_size(name: str, passes: int, steps: int) -> None:
    config = load_config(shipped_configs()[name], ["--data.train", "a.conllu", "--data.dev", "b.conllu"])
    for size, words in SIZES.items():
        plan = planned(config, lengths(words))
        optimization, work = plan.optimization, workload(plan, lengths(words), [])
        assert work.epochs == passes if size == "large" else work.epochs > passes
        assert steps <= work.steps and optimization.warmup_steps == round(0.03 * work.steps)
        assert settled(plan.data.batch_words) == (1000 if size == "large" else 300)
        remarks = plan_remarks(config, plan)
        assert f"data.batch_words {plan.data.batch_words}" in remarks[0] and "optimization.warmup_steps" in remarks[0]
        expected = f"epochs {passes} becomes {work.epochs}: optimization.steps asks for at least {steps:,} steps"
        assert [remark.partition(".")[2] for remark in remarks[1:]] == ([] if size == "large" else [expected])


def test_continued_training_has_passes_and_steps_at_least() -> None:
    config = load_config(shipped_configs()["mrt"], ["--data.train", "a.conllu", "--data.dev", "b.conllu"])
    small, large = (planned(config, lengths(words)).optimization for words in (20_000, 400_000))
    assert 500 <= settled(small.steps) < 600 and large.epochs == 2 and settled(large.steps) > 800
    assert [each.warmup_steps for each in (small, large)] == [round(0.03 * settled(e.steps)) for e in (small, large)]


def remarks_of(**settings: int) -> list[str]:
    """What is said of a run of 19-word sentences, a hundred steps an epoch."""
    given = config(optimization=replace(OptimizationConfig(), **settings))
    given = replace(given, data=replace(given.data, batch_words=200, batch_squared=None))
    return plan_remarks(given, planned(given, [19] * 1000))


def test_epochs_that_become_more_are_said() -> None:
    [_, remark, *_] = remarks_of(epochs=1, dev_every=4)
    assert remark == (
        "optimization.epochs 1 becomes 4: the dev set is measured every 4 epochs (optimization.dev_every)"
    )
    assert not [each for each in remarks_of(epochs=8, dev_every=4) if "becomes" in each]


def test_long_warmups_and_few_steps_are_warned_of() -> None:
    def warnings(**settings: int) -> list[str]:
        return [remark for remark in remarks_of(**settings) if remark.startswith("warning: ")]

    [warmup] = warnings(epochs=5, warmup_steps=101)
    assert "rises over 101 of 500 steps" in warmup
    assert not warnings(epochs=5, warmup_steps=100)
    [few] = warnings(epochs=4)
    assert "400 steps are few" in few


def test_workload() -> None:
    plan = planned(config(), lengths(20_000))
    work = workload(plan, lengths(20_000), [10, 20])
    assert (work.sentences, work.words, work.dev_words) == (len(lengths(20_000)), sum(lengths(20_000)), 30)
    assert work.steps == work.epochs * work.steps_per_epoch == plan.optimization.steps
    assert work.measurements * settled(plan.optimization.dev_every) == work.epochs


@pytest.mark.parametrize("mixing", ["together", "turns"])
def test_steps_are_those_of_both_kinds_of_batches(tmp_path: Path, mixing: Mixing) -> None:
    lines = ["w " * length + "\n" for length in lengths(60_000)]
    (tmp_path / "a.txt").write_text("".join(lines), encoding="utf-8")
    text = UnlabelledText([tmp_path / "a.txt"], words=40_000, max_words=100)
    mixture, plain = Mixture(None, text, mixing, 2.0), planned(config(), lengths(20_000))
    plan = planned(config(), lengths(20_000), None, mixture)
    assert plan.data == plain.data
    work, alone = workload(plan, lengths(20_000), [], mixture), workload(plain, lengths(20_000), [])
    assert (work.sentences, work.words, work.unlabelled_words) == (
        alone.sentences,
        alone.words,
        pytest.approx(40_000, abs=40),
    )
    assert work.steps == settled(plan.optimization.steps) >= 3500
    expected = alone.steps_per_epoch * {"together": 1, "turns": 3}[mixing]
    assert work.steps_per_epoch == pytest.approx(expected, rel=0.25)


def test_auto_must_be_planned_first() -> None:
    with pytest.raises(TreeparseError, match="auto"):
        settled(AUTO_OPTIMIZATION.warmup_steps)
    assert Counter(map(settled, ("linear", 3, None))) == Counter(("linear", 3, None))

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from treeparse.data.batches.mixing import ALL_LABELLED, BucketBatchSampler, EpochSampler, TrainingMix
from treeparse.data.batches.unlabelled import UnlabelledText
from treeparse.names import Mixing
from treeparse.shipped import shipped_files
from treeparse.training.fit import spoken_time, workload_line
from treeparse.training.reading import load_config
from treeparse.training.resolve import (
    Workload,
    resolution_remarks,
    resolve_data,
    resolve_settings,
    with_trainers_epochs,
    workload,
)
from treeparse.training.train_config import DataConfig, OptimizationConfig, ResolvedConfig, TrainConfig

AUTO_OPTIMIZATION = OptimizationConfig()


def config(dev: str | None = "dev.conllu", optimization: OptimizationConfig = AUTO_OPTIMIZATION) -> TrainConfig:
    data, trainer = DataConfig("train.conllu", dev), {"accelerator": "cpu"}
    return TrainConfig(data, "run", optimization=optimization, trainer=trainer)


def resolved(config: TrainConfig, lengths: list[int]) -> ResolvedConfig:
    return resolved_with_batches(config, lengths)[0]


def resolved_with_batches(
    config: TrainConfig, lengths: list[int], earlier: Mapping[str, Any] | None = None, mix: TrainingMix = ALL_LABELLED
) -> tuple[ResolvedConfig, EpochSampler]:
    config = with_trainers_epochs(config)
    data = resolve_data(config, lengths, earlier)
    sampler = EpochSampler(
        lengths, max_words=data.batch_words, max_squared=data.batch_squared, seed=config.seed, mix=mix
    )
    return resolve_settings(config, data, len(sampler), earlier), sampler


def lengths(words: int) -> list[int]:
    """Sentences of 5, 10, ..., 40 words, so many words in all."""
    cycle = list(range(5, 41, 5))
    return cycle * (words // sum(cycle))


@pytest.mark.parametrize("words", [1_000, 10_000, 20_000, 40_000, 200_000, 1_000_000])
def test_every_treebank_gets_its_epochs_and_its_steps(words: int) -> None:
    plan = resolved(config(), lengths(words))
    batches = BucketBatchSampler(lengths(words), max_words=plan.data.batch_words, max_squared=plan.data.batch_squared)
    optimization = plan.optimization
    epochs, every = optimization.epochs, optimization.dev_every
    steps = epochs * len(batches)
    assert epochs >= 28 and steps == optimization.steps >= 3500
    assert epochs == 28 or (epochs - every) * len(batches) < 3500, "no more than are needed"
    assert epochs % every == 0 and 10 <= epochs // every <= 30
    assert 0 < optimization.warmup_steps < 0.1 * steps
    assert 0.01 * steps < 1 / (1 - (optimization.average_decay or 0)) < 0.1 * steps
    assert 0.2 * epochs < (optimization.patience or 0) < 0.5 * epochs
    assert 200 <= plan.data.batch_words <= 1000
    assert plan.trainer["precision"] in ("32-true", "bf16-mixed")


def test_batches_grow_with_the_treebank() -> None:
    sizes = [resolved(config(), lengths(words)).data.batch_words for words in (10_000, 40_000, 200_000)]
    assert sizes == sorted(set(sizes))


def test_what_is_given_stays() -> None:
    optimization = OptimizationConfig(epochs=7, dev_every=1, patience=3, warmup_steps=0, average_decay=None)
    given = config(optimization=optimization)
    given = replace(
        given, data=replace(given.data, batch_words=123), trainer={"accelerator": "cpu", "precision": "32-true"}
    )
    plan = resolved(given, lengths(10_000))
    values = plan.to_dict()
    values["optimization"]["steps"] = "auto"
    assert values == given.to_dict()


@pytest.mark.parametrize(
    ("given", "epochs"),
    [({"epochs": 2}, 2), ({"steps": 401}, 5), ({"epochs": 9, "steps": 500}, 9), ({"epochs": 3, "steps": 500}, 5)],
)
def test_of_epochs_and_steps_what_is_given_counts(given: dict[str, int], epochs: int) -> None:
    given_config = config(optimization=replace(OptimizationConfig(dev_every=1), **given))
    given_config = replace(given_config, data=replace(given_config.data, batch_words=200, batch_squared=None))
    plan = resolved(given_config, [19] * 1000)  # 20 nodes each: ten sentences a batch, 100 batches an epoch
    assert plan.optimization.epochs == epochs


def test_a_resolved_config_resolves_to_itself() -> None:
    plan = resolved(config(), lengths(20_000))
    assert resolved(plan, lengths(20_000)) == plan


def test_a_resumed_run_keeps_the_values_that_it_chose() -> None:
    before = resolved(config(), lengths(20_000))
    longer = config(optimization=replace(AUTO_OPTIMIZATION, steps=9000))
    plan = resolved_with_batches(longer, lengths(20_000), before.to_dict())[0]
    assert plan.optimization.epochs > before.optimization.epochs
    changed = {"epochs", "steps"}
    for name, value in vars(before.optimization).items():
        assert name in changed or getattr(plan.optimization, name) == value
    assert plan.data == before.data


def test_a_short_run_is_not_cut_shorter() -> None:
    plan = resolved(config(optimization=OptimizationConfig(epochs=4)), lengths(20_000))
    assert (plan.optimization.patience or 0) >= 4


def test_no_patience_without_a_dev_set() -> None:
    assert resolved(config(dev=None), lengths(20_000)).optimization.patience is None
    held = config(dev=None)
    held = replace(held, data=replace(held.data, dev_share=0.1))
    assert resolved(held, lengths(20_000)).optimization.patience


def test_epochs_are_whole_measurements() -> None:
    optimization = OptimizationConfig(epochs=10, dev_every=4)
    assert resolved(config(optimization=optimization), lengths(5_000)).optimization.epochs == 12


SIZES = {"small": 20_000, "large": 300_000}


@pytest.mark.parametrize(
    ("name", "passes", "steps"),
    [("tiny", 28, 5000), ("fast", 15, 3000), ("bilstm", 34, 3500), ("transformer", 10, 2500), ("frozen", 30, 3000)],
)
def test_shipped_configs_fit_any_size(name: str, passes: int, steps: int) -> None:
    config = load_config(shipped_files()[name], ["--data.train", "a.conllu", "--data.dev", "b.conllu"])
    for size, words in SIZES.items():
        plan, batches = resolved_with_batches(config, lengths(words))
        optimization, work = plan.optimization, workload(plan, batches, lengths(words))
        assert work.epochs == passes if size == "large" else work.epochs > passes
        assert steps <= work.steps and optimization.warmup_steps == round(0.03 * work.steps)
        assert plan.data.batch_words == (1000 if size == "large" else 300)
        remarks = resolution_remarks(config, plan)
        assert f"data.batch_words {plan.data.batch_words}" in remarks[0] and "optimization.warmup_steps" in remarks[0]
        expected = f"epochs {passes} becomes {work.epochs}: optimization.steps asks for at least {steps:,} steps"
        assert [remark.partition(".")[2] for remark in remarks[1:]] == ([] if size == "large" else [expected])


def test_continued_training_has_passes_and_steps_at_least() -> None:
    config = load_config(shipped_files()["mrt"], ["--data.train", "a.conllu", "--data.dev", "b.conllu"])
    small, large = (resolved(config, lengths(words)).optimization for words in (20_000, 400_000))
    assert 500 <= small.steps < 600 and large.epochs == 2 and large.steps > 800
    assert [each.warmup_steps for each in (small, large)] == [round(0.03 * e.steps) for e in (small, large)]


def remarks_of(**settings: int) -> list[str]:
    """What is said of a run of 19-word sentences, a hundred steps an epoch."""
    given = config(optimization=replace(OptimizationConfig(), **settings))
    given = replace(given, data=replace(given.data, batch_words=200, batch_squared=None))
    return resolution_remarks(given, resolved(given, [19] * 1000))


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
    plan, batches = resolved_with_batches(config(), lengths(20_000))
    work = workload(plan, batches, lengths(20_000), dev_words=30)
    assert (work.sentences, work.words, work.dev_words) == (len(lengths(20_000)), sum(lengths(20_000)), 30)
    assert work.steps == plan.optimization.steps == work.epochs * len(batches)
    assert work.evaluations * plan.optimization.dev_every == work.epochs


@pytest.mark.parametrize("mixing", ["together", "turns"])
def test_steps_are_those_of_both_kinds_of_batches(tmp_path: Path, mixing: Mixing) -> None:
    lines = ["w " * length + "\n" for length in lengths(60_000)]
    (tmp_path / "a.txt").write_text("".join(lines), encoding="utf-8")
    text = UnlabelledText([tmp_path / "a.txt"], words=40_000, max_words=100)
    plain, labelled = resolved_with_batches(config(), lengths(20_000))
    plan, both = resolved_with_batches(config(), lengths(20_000), mix=TrainingMix(None, text, mixing, 2.0))
    assert plan.data == plain.data
    work, alone = workload(plan, both, lengths(20_000)), workload(plain, labelled, lengths(20_000))
    assert (work.sentences, work.words, work.unlabelled_words) == (
        alone.sentences,
        alone.words,
        pytest.approx(40_000, abs=40),
    )
    assert work.steps == plan.optimization.steps >= 3500
    expected = alone.steps / alone.epochs * {"together": 1, "turns": 3}[mixing]
    assert work.steps / work.epochs == pytest.approx(expected, rel=0.25)


def test_the_trainers_epochs_are_the_most() -> None:
    given = replace(config(optimization=OptimizationConfig(epochs=5, steps=900)), trainer={"max_epochs": 50})
    plan = resolved(given, lengths(10_000)).optimization
    assert (plan.epochs, plan.dev_every) == (50, 2)
    fewer = resolved(replace(given, trainer={"max_epochs": 33}), lengths(10_000)).optimization
    assert (fewer.epochs, fewer.dev_every) == (32, 2)
    seldom = resolved(replace(given, trainer={"max_epochs": 9, "check_val_every_n_epoch": 3}), lengths(10_000))
    assert (seldom.optimization.epochs, seldom.optimization.dev_every) == (9, 3)


WORK = Workload(sentences=910, words=20_000, dev_words=10_000, steps=42 * 120, epochs=120, evaluations=24)


def test_announcement() -> None:
    assert workload_line(WORK, None) == "910 sentences, 20,000 words: 5,040 steps, 120 epochs"
    # 120 times 20,000 words, and 24 times 10,000 that are parsed, 2.5 times as fast as trained: 2,496,000 words.
    assert workload_line(WORK, 6933.0).endswith(": 5,040 steps, 120 epochs, about 6 minutes")


def test_unlabelled_words_are_announced_and_take_time() -> None:
    # 120 times 10,000 words more than above.
    said = workload_line(replace(WORK, unlabelled_words=10_000), 3_696_000 / 360)
    assert said.startswith("910 sentences, 20,000 words, and 10,000 unlabelled ones an epoch: 5,040 steps")
    assert said.endswith(", about 6 minutes")


def test_times_have_the_unit_that_one_would_say() -> None:
    said = {0.2: "2 seconds", 40: "40 seconds", 95: "2 minutes", 3600: "60 minutes", 9000: "2.5 hours"}
    assert {seconds: spoken_time(seconds) for seconds in said} == said

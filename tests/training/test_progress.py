from dataclasses import replace

from treeparse.training.fit import spoken_time, workload_line
from treeparse.training.resolve import Workload

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

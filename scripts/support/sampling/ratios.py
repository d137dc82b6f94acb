"""[Unb] Appendix D: the ratio of the mean weights of trees with any number of roots and of those with one.

Times ``(1 + 1/n)^(n-1)``, the ratio of their numbers, it is how many trees rejection draws for one that it keeps.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from scripts.support.graphs.scored import Array, Scored
from scripts.support.sampling.analysis import log_tries
from scripts.support.sampling.experiment import Experiment, digits, line, rule

DrawWeights = Callable[[np.random.Generator, tuple[int, ...]], Array]
CHUNK = 1000  # graphs that are made at once
QUANTILES = (5, 50, 95)
FEW = 2  # below which, the paper says, nearly all ratios are


def truncated_normal(mean: float, deviation: float) -> DrawWeights:
    """Normal weights on the condition that they are positive."""

    def weights(stream: np.random.Generator, shape: tuple[int, ...]) -> Array:
        drawn = stream.normal(mean, deviation, shape)
        while (wrong := drawn <= 0).any():
            drawn[wrong] = stream.normal(mean, deviation, wrong.sum())
        return drawn

    return weights


WEIGHTS: Mapping[str, DrawWeights] = {
    "uniform in (0, 1)": lambda stream, shape: 1 - stream.random(shape),
    "exponential": lambda stream, shape: stream.exponential(size=shape),
    "normal above 0, mean 0, sd 1": truncated_normal(0, 1),
    "normal above 0, mean 1, sd 1": truncated_normal(1, 1),
    "normal above 0, mean 1, sd 3": truncated_normal(1, 3),
}


def mean_weight_ratios(weights: DrawWeights, words: int, graphs: int, seed: int) -> Array:
    """The ratios (graphs,) of graphs of so many words."""
    stream = np.random.default_rng(seed)
    found = []
    for start in range(0, graphs, CHUNK):
        shape = min(CHUNK, graphs - start), words + 1, words + 1
        batch = Scored(np.log(weights(stream, shape)), np.full(shape[0], words))
        found.append(np.exp(log_tries(batch) - (words - 1) * np.log1p(1 / words)))
    return np.concatenate(found)


def unb_ratios(run: Experiment) -> Iterator[str]:
    """[Unb] Fig. 7."""
    graphs = run.sizes.simulated_graphs
    yield "\n## [Unb] Fig. 7: mean weight of trees with any number of roots over that of trees with one\n"
    yield (
        f"{graphs:,} graphs a row. In [Unb] the mean is about 1 whatever the weights and the length, and nearly all "
        "ratios are below 2. The lengths and the parameters of the normal distributions are a choice made here.\n"
    )
    yield line("weights", "words", "mean", *(f"{share}%" for share in QUANTILES), "greatest", f"above {FEW}, %")
    yield "|:--" + rule(4 + len(QUANTILES))
    for name, weights in WEIGHTS.items():
        for words in run.sizes.simulated_words:
            found = mean_weight_ratios(weights, words, graphs, words)
            quantiles = map(digits, np.percentile(found, QUANTILES))
            above = 100 * (found > FEW).mean()
            yield line(name, words, digits(found.mean()), *quantiles, digits(found.max()), f"{above:.2f}")

"""Makes the calls of ``treeparse warm``, then uses every distribution and a parser; prints what warming left out.

As JSON: ``forgotten``, kernels that Python calls and warming did not; ``late``, those that were compiled or loaded
afterwards. It is a process of its own, for kernels stay loaded in one.
"""

import importlib
import json
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any, get_args

import torch
from helpers.sentences import learnable_sentences
from numba.core.dispatcher import Dispatcher
from torch import Tensor

import treeparse.kernels
from treeparse import LabeledCRF, NonProjectiveCRF, Parser, ProjectiveCRF, SecondOrderCRF, SiblingCRF
from treeparse.cli.commands import warm
from treeparse.model import ParserConfig
from treeparse.model.parser_config import LinearConfig
from treeparse.names import Algorithm
from treeparse.nn import BiLSTMConfig
from treeparse.sentence import Sentence
from treeparse.training.linear_model import LinearLearner
from treeparse.training.train_config import LinearLearningConfig
from treeparse.trees.families.arc_families import METHODS


def compiled_functions() -> dict[str, Any]:
    """All functions of the kernels' modules that numba compiles, by name."""
    found = {}
    for info in pkgutil.walk_packages(treeparse.kernels.__path__, "treeparse.kernels."):
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if isinstance(value, Dispatcher) and value.py_func.__module__ == module.__name__:
                found[f"{module.__name__}.{name}"] = value
    return found


def called_by(function: Any) -> Iterator[Any]:
    """What a compiled function mentions that is compiled as well."""
    names, known = function.py_func.__code__.co_names, function.py_func.__globals__
    for name in names:
        value = known.get(name)
        attributes = [getattr(value, other, None) for other in names] if isinstance(value, ModuleType) else []
        yield from (each for each in (value, *attributes) if isinstance(each, Dispatcher))


def use(p: Any, values: Tensor) -> None:
    """Call what a distribution over trees without labels offers."""
    p.log_prob(p.mode).sum().backward()
    _ = (
        p.log_partition,
        p.log_marginals,
        p.entropy(),
        p.tempered(1e-9).entropy(),
        p.renyi_entropy(2.0),
        p.covariance(values, values),
    )
    _ = p.topk(3), p.topk(40), next(p.best_first()), p.given(p.mode).marginals, p.cross_entropy(p), p.minimum_risk()
    _ = p.sample(), p.sample((50,)), p.sample_without_replacement(3), p.sample_without_replacement(30, method="trie")


def use_labeled(p: LabeledCRF) -> None:
    """Call what a distribution over labelled trees offers."""
    p.log_prob(*p.mode).sum().backward()
    _ = p.entropy(), p.topk(30), next(p.best_first()), p.sample((5,)), p.minimum_risk(), p.marginals
    _ = p.sample_without_replacement(3), p.sample_without_replacement(30, method="trie")


def use_all() -> None:
    torch.manual_seed(0)
    lengths = torch.tensor([6, 2, 4])
    for dtype, scale in ((torch.float32, 1.0), (torch.float64, 300.0)):
        scores = (torch.randn(3, 7, 7, dtype=dtype) * scale).requires_grad_()
        for single_root in (True, False):
            nonprojective = NonProjectiveCRF(scores, lengths, single_root=single_root)
            for sampler in METHODS:
                if sampler != ("wilson" if single_root else "wilson_marginal"):
                    nonprojective.sample((2,), method=sampler)
            siblings, grandparents = (torch.randn(3, 7, 7, 7, dtype=dtype).requires_grad_() for _ in range(2))
            for p in (
                nonprojective,
                ProjectiveCRF(scores, lengths, single_root=single_root),
                SiblingCRF(scores, siblings, lengths, single_root=single_root),
                SecondOrderCRF(scores, siblings, grandparents, lengths, single_root=single_root),
            ):
                use(p, torch.randn(3, 7, 7))
                use_labeled(LabeledCRF(p.with_scores(scores), torch.zeros(3, 7, 7, 3)))
    sentences = learnable_sentences(5, seed=1)
    encoder = BiLSTMConfig(min_count=1, word_size=4, char_size=4, char_filters=4, hidden_size=4, layers=1)
    parser = Parser.build(ParserConfig(encoder=encoder, arc_size=4, label_size=4), sentences).eval()
    for decoder in ("nonprojective", "projective", "minimum_risk"):
        parser.parse(sentences, decoder=decoder)
    _ = parser.kbest(sentences, 3), parser.sample(sentences, 3, seed=1), parser.sample(sentences, 3, replacement=False)
    use_linear(sentences)


def use_linear(sentences: list[Sentence]) -> None:
    """Learn and parse with a linear model."""
    trees: tuple[str, ...] = ("projective", "siblings", "second_order")
    for kind in trees:
        parser = Parser.build(ParserConfig(trees=kind, scorer=LinearConfig(bits=6, label_bits=6)), sentences).eval()
        for algorithm in get_args(Algorithm):
            LinearLearner(parser, LinearLearningConfig(algorithm, k=2)).learn(parser.collate(sentences))
        parser.parse(sentences)


if __name__ == "__main__":
    for index in range(len(warm.CALLS)):
        warm._call(index)
    functions = compiled_functions()
    called = {id(callee) for function in functions.values() for callee in called_by(function) if callee is not function}
    forgotten = [name for name, each in functions.items() if id(each) not in called and not each.signatures]
    before = {name: len(each.signatures) for name, each in functions.items()}
    use_all()
    late = [name for name, each in functions.items() if len(each.signatures) > before[name]]
    lists = {"forgotten": forgotten, "late": late}
    print(json.dumps({"functions": len(functions), **lists}))

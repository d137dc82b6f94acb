"""Calls of public functions, with some arguments replaced by values of wrong types, shapes and sizes."""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch

from treeparse import trees
from treeparse.errors import TreeparseError
from treeparse.model import Parser, ParserConfig
from treeparse.nn import BiLSTMConfig
from treeparse.objectives import TreeLikelihood
from treeparse.sentence import Sentence
from treeparse.trees import (
    LabeledCRF,
    Mixture,
    NonProjectiveCRF,
    NonProjectiveSiblingCRF,
    ProjectiveCRF,
    SecondOrderCRF,
    SiblingCRF,
    layouts,
)

LONGEST = 500  # characters of a message
WORDS, LABELS = 3, 3


class Call(NamedTuple):
    """A function, and arguments with which it works."""

    name: str
    function: Callable[..., object]
    arguments: Mapping[str, Any]


def small_parser() -> Parser:
    """An untrained parser."""
    sentence = Sentence(("a", "b"), heads=(0, 1), labels=("root", "obj"))
    sizes = {"word_size": 4, "char_size": 4, "char_filters": 4, "char_widths": (3,), "hidden_size": 4, "layers": 1}
    config = ParserConfig(encoder=BiLSTMConfig(min_count=1, **sizes), arc_size=4, label_size=4)
    return Parser.build(config, [sentence]).eval()


def odd_values() -> dict[str, Any]:
    """Values that are wrong for most arguments, by name."""
    arcs = torch.ones(2, WORDS + 1, WORDS + 1)
    with warnings.catch_warnings(action="ignore"):  # nested tensors are new
        nested = torch.nested.nested_tensor([torch.ones(4, 4), torch.ones(3, 3)])
    return {
        "None": None,
        "True": True,
        "0": 0,
        "-1": -1,
        "1.5": 1.5,
        "nan": math.nan,
        "inf": math.inf,
        "a huge integer": 10**30,
        "a string": "text",
        "an escape sequence": "\x1b[31m",
        "a long string": "x" * 10_000,
        "bytes": b"x",
        "an empty list": [],
        "a list of integers": [3, 2],
        "a list of numbers": [1.0, 2.0],
        "a list of strings": ["a", "b"],
        "a nested list": [[3, 2]],
        "a tuple": (2,),
        "a mapping": {"a": 1},
        "a set": {1},
        "an object": object(),
        "a type": int,
        "a function": len,
        "an iterator": iter([1]),
        "an array": np.ones((2, WORDS + 1, WORDS + 1)),
        "an array of integers": np.array([3, 2]),
        "a number of numpy": np.int64(2),
        "a tensor of one number": torch.tensor(1.0),
        "a tensor of integers": torch.tensor([3, 2]),
        "an empty tensor": torch.empty(0),
        "a tensor of another shape": torch.ones(3, 5, 5),
        "a tensor of many heads": torch.zeros(7, 2, WORDS + 1, dtype=torch.int64),
        "a tensor of no words": torch.ones(2, 1, 1),
        "int8": torch.ones(2, WORDS + 1, dtype=torch.int8),
        "bool": arcs.bool(),
        "float16": arcs.half(),
        "float8": arcs.to(torch.float8_e4m3fn),
        "complex": arcs.to(torch.complex64),
        "too large scores": 1e30 * arcs,
        "NaN scores": math.nan * arcs,
        "forbidden arcs": -math.inf * arcs,
        "sparse": arcs.to_sparse(),
        "nested": nested,
        "without values": torch.ones(2, WORDS + 1, WORDS + 1, device="meta"),
        "heads without values": torch.ones(2, WORDS + 1, device="meta", dtype=torch.int64),
    }


def calls(parser: Parser) -> list[Call]:
    """Every public function of ``treeparse.trees`` and of parsers that takes arguments."""
    return [*_of_trees(), *_of_layouts(), *_of_parsers(parser)]


def fault_of(call: Call, changes: Mapping[str, Any]) -> str | None:
    """Make a call with other arguments; return what is wrong with its end, None for a result or a whole sentence.

    A sentence may begin with the name of an argument. What a function raises that is an argument itself is its own.
    """
    functions = {"progress", *(name for name, value in call.arguments.items() if callable(value))}
    if any(callable(value) for name, value in changes.items() if name in functions):
        return None
    try:
        call.function(**{**call.arguments, **changes})
    except TreeparseError as error:
        message = str(error)
        begins = message[:1].upper() == message[:1] or message.split()[0] in call.arguments
        is_whole = begins and message[-1:] in ".?" and message.isprintable()
        return None if is_whole and len(message) <= LONGEST else f"not a sentence: {message!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _of_trees() -> Iterator[Call]:
    stream = torch.Generator().manual_seed(1)
    arcs, siblings = torch.randn(2, 4, 4, generator=stream), torch.randn(2, 4, 4, 4, generator=stream)
    lengths, labels = torch.tensor([3, 2]), torch.randn(2, 4, 4, LABELS, generator=stream)
    arc_arguments = {"scores": arcs, "lengths": lengths, "single_root": True, "validate_args": None}
    kinds: dict[type[Any], dict[str, Any]] = {
        NonProjectiveCRF: {**arc_arguments, "backend": None},
        ProjectiveCRF: arc_arguments,
        SiblingCRF: {**arc_arguments, "siblings": siblings},
        SecondOrderCRF: {**arc_arguments, "siblings": siblings, "grandparents": siblings},
        NonProjectiveSiblingCRF: {**arc_arguments, "siblings": siblings, "limit": 5},
        LabeledCRF: {"base": NonProjectiveCRF(arcs, lengths), "label_scores": labels, "validate_args": None},
    }
    for kind, arguments in kinds.items():
        yield Call(kind.__name__, lambda kind=kind, **given: kind(**given).mode, arguments)
        yield from _of_distribution(kind, arguments)
    p = LabeledCRF(**kinds[LabeledCRF])
    yield Call("Mixture", Mixture, {"components": [p, p], "log_weights": None})
    yield Call("combined", trees.combined, {"distributions": [p, p], "how": "scores"})
    chain = torch.tensor([[-1, 0, 1, 2]])
    climbing = {"score": lambda heads: heads.sum(-1).double(), "starts": chain, "single_root": True}
    yield Call("climb", trees.climb, climbing)
    logs, values = torch.tensor([[-1.0, -2.0]]), torch.tensor([[1.0, 2.0]])
    drawn = {"log_probs": logs, "values": values}
    yield Call("sample_mean", trees.sample_mean, {**drawn, "baseline": True})
    yield Call("unordered_set", trees.unordered_set, {**drawn, "baseline": True})
    drawn |= {"threshold": torch.tensor([-3.0]), "baseline": 0.0}
    yield Call("horvitz_thompson", trees.horvitz_thompson, drawn)


def _of_layouts() -> Iterator[Call]:
    arcs = torch.randn(2, 4, 4)
    yield Call("from_torch_struct", layouts.from_torch_struct, {"scores": arcs, "no_arc": 0.0})
    for convert in (layouts.to_torch_struct, layouts.from_supar, layouts.to_supar):
        yield Call(convert.__name__, convert, {"scores": arcs})
    yield Call("to_synjax", layouts.to_synjax, {"scores": arcs, "lengths": torch.tensor([3, 2])})
    yield Call("to_ufal", layouts.to_ufal, {"scores": arcs[0]})
    yield Call("to_arcs", layouts.to_arcs, {"heads": torch.tensor([[-1, 0, 1]])})
    yield Call("from_arcs", layouts.from_arcs, {"arcs": arcs})


def _of_distribution(kind: type[Any], settings: dict[str, Any]) -> Iterator[Call]:
    """The methods of one distribution, each time of a new one."""
    p = kind(**settings)
    heads = torch.tensor([[-1, 0, 1, 2], [-1, 0, 1, -1]])
    tree = {"heads": heads, "labels": heads.clamp(min=0)} if kind is LabeledCRF else {"heads": heads}
    value = {"value": heads, **({"labels": heads.clamp(min=0)} if kind is LabeledCRF else {})}
    values = heads if kind is NonProjectiveSiblingCRF else torch.ones(*p.marginals.shape, 2)
    generator = {"generator": None}
    methods: dict[str, dict[str, Any]] = {
        "score": value,
        "given": tree,
        "within": {"mask": torch.ones(2, 4, 4, dtype=torch.bool)},
        "tempered": {"temperature": 2.0},
        "to": {"device": "cpu"},
        "expand": {"batch_shape": (3, 2)},
        "of_items": {"items": torch.tensor([0])},
        "__getitem__": {"index": 0},
    }
    if kind is not LabeledCRF:
        methods["with_scores"] = {"scores": settings["scores"], "lengths": settings["lengths"], "validate_args": None}
    if kind is NonProjectiveSiblingCRF:
        methods |= {"mode_with_bound": {"limit": 3}, "mean_field": {"rounds": 2}}
    else:
        methods |= {
            "log_prob": value,
            "risk": tree,
            "expected_uas": {"heads": heads},
            "expectation": {"r": values},
            "covariance": {"r": values, "s": values},
            "second_moment": {"r": values, "s": values},
            "cross_entropy": {"q": kind(**settings)},
            "renyi_entropy": {"alpha": 2.0},
            "log_norm": {"order": 2.0},
            "topk": {"k": 2},
            "sample": {"sample_shape": (2,), **generator},
            "sample_without_replacement": {"k": 2, "method": None, **generator},
            "relaxed_sample": {"temperature": 0.5, "hard": False, **generator},
            "enumerate_support": {"expand": True},
        }
    if kind is LabeledCRF:
        methods |= {
            "expected_las": tree,
            "label_log_prob": tree,
            "tree_marginals": tree,
            "relabelled": {"indices": [0, 1]},
            "decode": {"decoder": "best"},
            "for_decoder": {"decoder": "projective"},
        }
    for name, arguments in methods.items():

        def call(*, name: str = name, **given: Any) -> object:
            method = getattr(kind(**settings), name)
            return method(*given.values()) if name.startswith("__") else method(**given)

        yield Call(f"{kind.__name__}.{name}", call, arguments)


def _of_parsers(parser: Parser) -> Iterator[Call]:
    sentences = [
        Sentence(("a", "b"), heads=(0, 1), labels=("root", "obj")),
        Sentence(("a",), heads=(0,), labels=("root",)),
    ]
    batch = parser.collate(sentences)
    common = {"batch_words": 50, "decoder": None, "keep_heads": False, "within": False, "rules": None}
    sentences_first = {"sentences": sentences, **common, "progress": None}
    marks = {"probabilities": False}
    yield Call("parse", parser.parse, {**sentences_first, **marks, "head_threshold": None, "gradient": False})
    yield Call("kbest", parser.kbest, {**sentences_first, **marks, "k": 2})
    draws = {"k": 2, "replacement": True, "seed": 0, "first": 0, "temperature": 1.0}
    yield Call("sample", parser.sample, {**sentences_first, **draws})
    yield Call("score_trees", parser.score_trees, {"sentences": sentences, "batch_words": 50, "progress": None})
    yield Call("stream", lambda **given: list(parser.stream(**given)), {"sentences": sentences, "ahead": 5})
    yield Call("collate", parser.collate, {"sentences": sentences, "indices": None})
    yield Call("distribution", parser.distribution, {"batch": batch, "scores": None})
    yield Call("loss", parser.loss, {"batch": batch, "objective": TreeLikelihood()})
    yield Call("use_precision", parser.use_precision, {"name": "32"})
    yield Call("from_pretrained", Parser.from_pretrained, {"directory": "/no/such/folder"})

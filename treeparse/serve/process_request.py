"""A request to ``/process``, from its checked parameters."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from aiohttp import web

from treeparse import rules
from treeparse.corpus.writers import TEXT_WRITERS
from treeparse.errors import TreeparseError, did_you_mean
from treeparse.model import Ensemble, Parser, TreeRequest
from treeparse.model.promises import Promise, kept_threshold
from treeparse.rules import Rules
from treeparse.shipped import shipped_file, shipped_files

RETRY_AFTER = 2  # seconds after which a refused client should retry
INPUTS = ("conllu", "horizontal", "vertical")
JSON = "json"
OUTPUTS = (*TEXT_WRITERS, JSON)
SWITCH = {"": True, "1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
NONE = "none"  # the value of a flag that turns it off
PRESEGMENTED = "presegmented"
TOKENIZING = ("normalized_spaces", PRESEGMENTED)  # options of UDPipe's tokenizer; ours always normalises spaces
LARGEST_SEED = 2**63 - 1


class Parameter(NamedTuple):
    """What a parameter means, an example of its value, and all values if they are few."""

    meaning: str
    example: str
    values: Collection[str] = ()


PARAMETERS: Mapping[str, Parameter] = {
    "data": Parameter("the sentences, in UTF-8; required", "They saw her duck ."),
    "model": Parameter("a name from /models, or the part of a name before a hyphen; by default the first one", ""),
    "input": Parameter(
        "conllu (default), horizontal: one sentence a line, or vertical: one word a line", "horizontal", INPUTS
    ),
    "output": Parameter(
        "conllu (default), jsonl of lists, or json: objects with every arc's probability", "conllu", OUTPUTS
    ),
    "tokenizer": Parameter("the data are raw text, whose lines are paragraphs, or with presegmented sentences", NONE),
    "tagger": Parameter("write the tags that the model predicts", "", ("", NONE)),
    "parser": Parameter("every sentence is parsed", "", ("",)),
    "keep": Parameter("heads: keep the heads and labels that the CoNLL-U has; _ leaves them open", "", ("", "heads")),
    "within": Parameter("1: each word's head is one of Heads= in its MISC, if it has some", "0", tuple(SWITCH)),
    "rules": Parameter("ud, or the text of a file of rules, which trees must satisfy", "root_upos: [VERB, NOUN, X]"),
    "probabilities": Parameter("1: write the probabilities of arcs, labels and trees", "1", tuple(SWITCH)),
    "head_sets": Parameter("a share of words: write sets of heads that hold the true one for all but these", "0.5"),
    "certain": Parameter("a share of sentences: write the words that are all right in all but these", "0.5"),
    "kbest": Parameter("a number K: the K best trees of each sentence", "2"),
    "sample": Parameter("a number K: K trees drawn at random", "2"),
    "seed": Parameter("of samples, a whole number (default 0)", "1"),
    "treebank": Parameter("parse as this treebank is annotated, one that the model was trained on", "ewt"),
}


class RequestError(web.HTTPException):
    """The answer to a refused request: a sentence, with an HTTP status."""

    def __init__(self, status: int, sentence: str) -> None:
        self.status_code = status
        super().__init__(text=f"{sentence}\n", headers={"Retry-After": str(RETRY_AFTER)} if status == 503 else None)


@dataclass(frozen=True)
class Limits:
    """Limits of requests; a request beyond them is refused.

    Attributes:
        request_bytes: bytes in the body of a request.
        request_words: words in a request; a list of trees counts its words once for each tree.
        sentence_words: words in a sentence.
        trees: trees in a list.
        waiting: requests that wait for the parser at the same time.
        seconds: seconds for a request to wait and be parsed, after it was read.
        client_seconds: seconds for a client to send a request.
    """

    request_bytes: int = 4 << 20
    request_words: int = 100_000
    sentence_words: int = 1000
    trees: int = 100
    waiting: int = 128
    seconds: float = 60
    client_seconds: float = 60


@dataclass(frozen=True, slots=True)
class ProcessRequest:
    """A request without its data; the sentences of equal requests are parsed together.

    Attributes:
        model: the name of a model.
        input: the format of the data, if they are not raw text.
        output: the format of the answer.
        trees: the trees of every sentence.
        tags: whether the tags that the model predicts are written.
        tokenizing: the options of the tokenizer if the data are raw text; None if they are tokenised.
    """

    model: str
    input: str
    output: str
    trees: TreeRequest
    tags: bool
    tokenizing: tuple[str, ...] | None = None


def read_request(
    parameters: Mapping[str, str],
    models: Mapping[str, Parser | Ensemble],
    limits: Limits,
    *,
    has_tokenizer: bool = False,
) -> ProcessRequest:
    """Return the request that parameters describe.

    Args:
        parameters: their values by name.
        models: the models by name, the default one first.
        limits: the limits of requests.
        has_tokenizer: whether there is a tokenizer for raw text.

    Raises:
        RequestError: parameters are missing, unknown, wrong or contradictory, or the model is unknown.
    """
    for name in parameters:
        if name not in PARAMETERS:
            problem = f"Unknown parameter {name!r}. Parameters: {', '.join(PARAMETERS)}"
            raise RequestError(400, problem + (did_you_mean(name, PARAMETERS) or "."))
    if "data" not in parameters:
        raise RequestError(400, "The parameter 'data' is missing: it holds the sentences.")
    if _one_of("parser", parameters.get("parser", ""), ("", NONE)) == NONE:
        raise RequestError(400, "The models here parse every sentence: leave out parser=none.")
    model = model_named(parameters.get("model", ""), models)
    tokenizing = _tokenizing(parameters.get("tokenizer", NONE), has_tokenizer)
    trees = _trees(parameters, models[model], limits)
    tags = _one_of("tagger", parameters.get("tagger", NONE), ("", NONE)) != NONE
    if tags and trees.is_list:
        raise RequestError(400, "The parameter 'tagger' is for parses: leave it out of lists.")
    request = ProcessRequest(
        model=model,
        input=_one_of("input", parameters.get("input", INPUTS[0]), INPUTS),
        output=_one_of("output", parameters.get("output", OUTPUTS[0]), OUTPUTS),
        trees=trees,
        tags=tags,
        tokenizing=tokenizing,
    )
    return _checked(request, parameters)


def _checked(request: ProcessRequest, parameters: Mapping[str, str]) -> ProcessRequest:
    """Return the request, complete; raise if its parameters do not fit together."""
    trees = request.trees
    if "seed" in parameters and trees.method != "sample":
        raise RequestError(400, "The parameter 'seed' needs the parameter 'sample': send sample=K, or leave out seed.")
    if (trees.keep_heads or trees.within) and (request.input != "conllu" or request.tokenizing is not None):
        raise RequestError(400, "The parameters 'keep' and 'within' read CoNLL-U: send input=conllu and no tokenizer.")
    is_text = request.output == "conllu"
    if request.output == "jsonl" and trees.method == "parse":
        raise RequestError(400, "The output jsonl is for lists: send kbest=K or sample=K, too, or output=conllu.")
    if not is_text and (trees.head_threshold is not None or trees.certain is not None):
        raise RequestError(
            400, "The parameters 'head_sets' and 'certain' are for output=conllu: leave out one of them."
        )
    if request.output != JSON:
        return request
    if trees.is_list:
        raise RequestError(400, "The output json is for parses: send output=jsonl for lists.")
    return replace(request, trees=replace(trees, probabilities=True, arc_marginals=True))


def model_named(name: str, models: Collection[str]) -> str:
    """Return the model of a name, or of the part of a name before a hyphen, as in UDPipe; the first one if empty."""
    named = [model for model in models if name in ("", model)]
    for model in named or [model for model in models if model.startswith(f"{name}-")]:
        return model
    problem = f"Unknown model {name!r}. Models: {', '.join(models)}"
    raise RequestError(404, problem + (did_you_mean(name, models) or "."))


def _tokenizing(text: str, has_tokenizer: bool) -> tuple[str, ...] | None:
    """Return the options of the tokenizer, which semicolons separate; None without one."""
    if text == NONE:
        return None
    if not has_tokenizer:
        raise RequestError(
            400,
            "The server has no tokenizer: send tokenised sentences without the parameter 'tokenizer', with "
            "input=horizontal one a line, words separated by spaces.",
        )
    return tuple(_one_of("tokenizer", option, TOKENIZING) for option in text.split(";") if option)


def _trees(values: Mapping[str, str], model: Parser | Ensemble, limits: Limits) -> TreeRequest:
    if "kbest" in values and "sample" in values:
        raise RequestError(400, "The parameters 'kbest' and 'sample' ask for different lists: send one of them.")
    options: dict[str, Any] = {"seed": _number("seed", values.get("seed", "0"), 0, LARGEST_SEED)}
    for method in ("kbest", "sample"):
        if method in values:
            options |= {"method": method, "k": _number(method, values[method], 1, limits.trees)}
    if options.get("method") != "sample":
        del options["seed"]
    try:
        model.check_treebank(values.get("treebank"))
        return TreeRequest(
            **options,
            probabilities=_switch("probabilities", values),
            head_threshold=_threshold("head_sets", values, "heads", model),
            certain=_threshold("certain", values, "sentences", model),
            keep_heads=_one_of("keep", values.get("keep", ""), PARAMETERS["keep"].values) != "",
            within=_switch("within", values),
            rules=_rules(values["rules"]) if values.get("rules") else None,
            treebank=values.get("treebank"),
        )
    except TreeparseError as error:
        raise RequestError(400, str(error)) from error


def _rules(text: str) -> Rules:
    """Return the rules that come with treeparse under a name, or those of a text."""
    return _shipped_rules(text) if text in shipped_files("rules") else rules.parse_rules(text)


@cache
def _shipped_rules(name: str) -> Rules:
    return rules.read_rules(shipped_file(name, "rules"))


def _threshold(name: str, values: Mapping[str, str], promise: Promise, model: Parser | Ensemble) -> float | None:
    if name not in values:
        return None
    try:
        share = float(values[name])
    except ValueError:
        share = math.nan
    if not 0 < share < 1:
        problem = f"The parameter {name!r} must be a share above 0 and below 1, got {values[name][:50]!r}."
        raise RequestError(400, problem)
    return kept_threshold(model, promise, share)


def _switch(name: str, values: Mapping[str, str]) -> bool:
    return SWITCH[_one_of(name, values.get(name, "0").lower(), SWITCH)]


def _number(name: str, text: str, least: int, most: int) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    if not least <= number <= most:
        problem = f"The parameter {name!r} must be a whole number from {least} to {most}, got {text[:50]!r}."
        raise RequestError(400, problem)
    return number


def _one_of(name: str, text: str, known: Collection[str]) -> str:
    if text in known:
        return text
    choice = ", ".join(map(repr, known))
    raise RequestError(400, f"The parameter {name!r} must be one of {choice}, got {text[:50]!r}.")

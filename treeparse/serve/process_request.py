"""A request to ``/process``, from its checked parameters."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from aiohttp import web

from treeparse.corpus.writers import TEXT_WRITERS
from treeparse.errors import did_you_mean
from treeparse.model import TreeRequest

RETRY_AFTER = 2  # seconds after which a refused client should retry
FLAGS = ("tokenizer", "tagger", "parser")  # of UDPipe: present, or "none"; their values are options of UDPipe
OF_TREES = ("kbest", "sample", "seed", "probabilities", "treebank")
NAMES = ("data", "model", "input", "output", *FLAGS, *OF_TREES)
INPUTS = ("conllu", "horizontal", "vertical")
OUTPUTS = tuple(TEXT_WRITERS)
SWITCH = {"": True, "1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
NONE = "none"  # the value of a flag that turns it off
LARGEST_SEED = 2**63 - 1


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
        input: the format of the data.
        output: the format of the answer.
        trees: the trees of every sentence.
        tags: whether the tags that the model predicts are written.
    """

    model: str
    input: str
    output: str
    trees: TreeRequest
    tags: bool


def read_request(parameters: Mapping[str, str], models: Collection[str], limits: Limits) -> ProcessRequest:
    """Return the request that parameters describe.

    Args:
        parameters: their values by name.
        models: the names of the models, the default one first.
        limits: the limits of requests.

    Raises:
        RequestError: parameters are missing, unknown, wrong or contradictory, or the model is unknown.
    """
    for name in parameters:
        if name not in NAMES:
            problem = f"Unknown parameter {name!r}. Parameters: {', '.join(NAMES)}"
            raise RequestError(400, problem + (did_you_mean(name, NAMES) or "."))
    if "data" not in parameters:
        raise RequestError(400, "The parameter 'data' is missing: it holds the sentences.")
    if parameters.get("tokenizer", NONE) != NONE:
        raise RequestError(
            400,
            "The models here have no tokenizer: send tokenised sentences without the parameter 'tokenizer', with "
            "input=horizontal one a line, words separated by spaces.",
        )
    if _one_of("parser", parameters.get("parser", ""), ("", NONE)) == NONE:
        raise RequestError(400, "The models here parse every sentence: leave out parser=none.")
    trees = _trees(parameters, limits)
    tags = _one_of("tagger", parameters.get("tagger", NONE), ("", NONE)) != NONE
    if tags and trees.is_list:
        raise RequestError(400, "The parameter 'tagger' is for parses: leave it out of lists.")
    output = _one_of("output", parameters.get("output", OUTPUTS[0]), OUTPUTS)
    if "seed" in parameters and trees.method != "sample":
        raise RequestError(400, "The parameter 'seed' needs the parameter 'sample': send sample=K, or leave out seed.")
    if output == "jsonl" and trees.method == "parse":
        raise RequestError(400, "The output jsonl is for lists: send kbest=K or sample=K, too, or output=conllu.")
    return ProcessRequest(
        model=model_named(parameters.get("model", ""), models),
        input=_one_of("input", parameters.get("input", INPUTS[0]), INPUTS),
        output=output,
        trees=trees,
        tags=tags,
    )


def model_named(name: str, models: Collection[str]) -> str:
    """Return the model of a name, or of the part of a name before a hyphen, as in UDPipe; the first one if empty."""
    named = [model for model in models if name in ("", model)]
    for model in named or [model for model in models if model.startswith(f"{name}-")]:
        return model
    problem = f"Unknown model {name!r}. Models: {', '.join(models)}"
    raise RequestError(404, problem + (did_you_mean(name, models) or "."))


def _trees(values: Mapping[str, str], limits: Limits) -> TreeRequest:
    if "kbest" in values and "sample" in values:
        raise RequestError(400, "The parameters 'kbest' and 'sample' ask for different lists: send one of them.")
    probabilities = SWITCH[_one_of("probabilities", values.get("probabilities", "0").lower(), SWITCH)]
    seed = _number("seed", values.get("seed", "0"), 0, LARGEST_SEED)
    for method in ("kbest", "sample"):
        if method in values:
            k = _number(method, values[method], 1, limits.trees)
            return TreeRequest(method, k, probabilities=probabilities, seed=seed, treebank=values.get("treebank"))
    return TreeRequest(probabilities=probabilities, treebank=values.get("treebank"))


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

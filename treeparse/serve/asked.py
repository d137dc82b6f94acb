"""What a request asks for: its parameters, checked."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from treeparse.errors import did_you_mean
from treeparse.names import ListFormat
from treeparse.serve.forms import text_of
from treeparse.serve.limits import Limits, RequestError

FLAGS = ("tokenizer", "tagger", "parser")  # of UDPipe: there, or "none"; their values are options of UDPipe's own
OURS = ("kbest", "sample", "seed", "probabilities")
NAMES = ("data", "model", "input", "output", *FLAGS, *OURS)
INPUTS = ("conllu", "horizontal", "vertical")
OUTPUTS: tuple[ListFormat, ...] = ("conllu", "jsonl")
SWITCH = {"": True, "1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
LARGEST_SEED = 2**63 - 1

N = TypeVar("N", bound=str)
Trees = Literal["parse", "kbest", "sample"]


@dataclass(frozen=True, slots=True)
class Asked:
    """All of a request but its data; what is asked alike is parsed together.

    ``trees`` is parse, kbest or sample, and ``k`` the trees of a sentence; the other fields are the parameters.
    """

    model: str
    input: str
    output: ListFormat
    trees: Trees
    k: int
    seed: int
    probabilities: bool
    tags: bool


def asked_of(given: Mapping[str, bytes], models: Collection[str], limits: Limits) -> Asked:
    """What parameters ask for.

    Args:
        given: the parameters.
        models: the names of the models that there are, the default one first.
        limits: of requests.

    Raises:
        RequestError: parameters that are missing, unknown or wrong, or do not go together; no such model.
    """
    for name in given:
        if name not in NAMES:
            known = f"there are {', '.join(NAMES)}"
            raise RequestError(400, f"There is no parameter {name!r}; {known}{did_you_mean(name, NAMES) or '.'}")
    if "data" not in given:
        raise RequestError(400, "The parameter 'data' is missing: it holds the sentences.")
    values = {name: text_of(name, value) for name, value in given.items() if name != "data"}
    if values.get("tokenizer", "none") != "none":
        raise RequestError(
            400,
            "The models here have no tokenizer: send tokenised sentences without the parameter 'tokenizer', with "
            "input=horizontal one a line, words separated by spaces.",
        )
    trees, k = _trees(values, limits)
    asked = Asked(
        model=model_named(values.get("model", ""), models),
        input=_one_of("input", values.get("input", INPUTS[0]), INPUTS),
        output=_one_of("output", values.get("output", OUTPUTS[0]), OUTPUTS),
        trees=trees,
        k=k,
        seed=_number("seed", values.get("seed", "0"), 0, LARGEST_SEED),
        probabilities=SWITCH[_one_of("probabilities", values.get("probabilities", "0").lower(), SWITCH)],
        tags=values.get("tagger", "none") != "none",
    )
    _check_together(asked, values)
    return asked


def model_named(name: str, models: Collection[str]) -> str:
    """The model of a name, or of one that goes on with a hyphen, as in UDPipe; the first one if the name is empty."""
    for model in models:
        if name in ("", model):
            return model
    for model in models:
        if model.startswith(f"{name}-"):
            return model
    known = f"there are {', '.join(models)}{did_you_mean(name, models) or '.'}"
    raise RequestError(404, f"There is no model {name!r} here; {known}")


def _trees(values: Mapping[str, str], limits: Limits) -> tuple[Trees, int]:
    if "kbest" in values and "sample" in values:
        raise RequestError(400, "The parameters 'kbest' and 'sample' ask for different lists: send one of them.")
    if "kbest" in values:
        return "kbest", _number("kbest", values["kbest"], 1, limits.trees)
    if "sample" in values:
        return "sample", _number("sample", values["sample"], 1, limits.trees)
    return "parse", 1


def _check_together(asked: Asked, values: Mapping[str, str]) -> None:
    if "seed" in values and asked.trees != "sample":
        raise RequestError(400, "The parameter 'seed' is for samples: send sample=K, too, or leave it out.")
    if asked.output == "jsonl" and asked.trees == "parse":
        raise RequestError(400, "The output jsonl is for lists: send kbest=K or sample=K, too, or output=conllu.")


def _number(name: str, text: str, least: int, most: int) -> int:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    if not least <= number <= most:
        raise RequestError(400, f"The parameter {name!r} is {text[:50]!r}, but a whole number from {least} to {most}.")
    return number


def _one_of(name: str, text: str, known: Iterable[N]) -> N:
    for each in known:
        if text == each:
            return each
    choice = ", ".join(repr(each) for each in known)
    raise RequestError(400, f"The parameter {name!r} is {text[:50]!r}, but there are {choice}.")

"""What is answered: sentences under their trees, as text, in the JSON of UDPipe's answers."""

import functools
import json
from collections.abc import Iterable, Iterator, Sequence

from treeparse.data.annotations import with_probabilities
from treeparse.data.conllu import ConlluSentence, conllu_texts
from treeparse.data.nbest.files import nbest_texts
from treeparse.data.parses import NBestList, Parse
from treeparse.serve.asked import Asked
from treeparse.version import installed_version


@functools.cache
def _acknowledgements() -> list[str]:
    return [f"treeparse {installed_version()}"]


def answer(asked: Asked, sentences: Sequence[ConlluSentence], lists: Iterable[Sequence[Parse]]) -> bytes:
    """The body of an answer: the model's name, what it was made by, and the text of the trees."""
    pairs = zip(sentences, lists, strict=True)
    if asked.trees == "parse":
        texts = conllu_texts(_parsed(pairs, asked))
    else:
        texts = nbest_texts((NBestList(sentence, tuple(trees)) for sentence, trees in pairs), asked.output)
    return as_json(
        {
            "model": asked.model,
            "acknowledgements": _acknowledgements(),
            "result": "".join(texts),
        }
    )


def as_json(value: object) -> bytes:
    """JSON as all answers have it: UTF-8, with a line end behind it."""
    return json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n"


def _parsed(pairs: Iterable[tuple[ConlluSentence, Sequence[Parse]]], asked: Asked) -> Iterator[ConlluSentence]:
    for sentence, [parse] in pairs:
        parsed = sentence.with_parse(parse.heads, parse.labels, tags=parse.tags if asked.tags else {})
        yield with_probabilities(parsed, parse) if asked.probabilities else parsed

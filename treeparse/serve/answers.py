"""The bodies of answers: sentences with their trees, as text, in the JSON of UDPipe's service."""

import functools
import json
from collections.abc import Iterable, Sequence

from treeparse.corpus.writers import WriterOptions, make_writer
from treeparse.data.conllu import ConlluSentence
from treeparse.data.parses import NBestList, Parse
from treeparse.serve.process_request import ProcessRequest
from treeparse.version import installed_version


@functools.cache
def _acknowledgements() -> list[str]:
    return [f"treeparse {installed_version()}"]


def answer(request: ProcessRequest, sentences: Sequence[ConlluSentence], lists: Iterable[Sequence[Parse]]) -> bytes:
    """Return the body of an answer: the model's name, the software and the text of the trees."""
    trees = request.trees
    has_lists = trees.method != "parse"
    options = WriterOptions(lists=has_lists, tags=request.tags and not has_lists, probabilities=trees.probabilities)
    results = (NBestList(sentence, tuple(own)) for sentence, own in zip(sentences, lists, strict=True))
    return as_json(
        {
            "model": request.model,
            "acknowledgements": _acknowledgements(),
            "result": "".join(make_writer(request.output, options).texts(results)),
        }
    )


def as_json(value: object) -> bytes:
    """Return a value as JSON in UTF-8, with a line end."""
    return json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n"

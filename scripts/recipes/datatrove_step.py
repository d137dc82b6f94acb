"""A step of a DataTrove pipeline: each document gets the trees of its sentences (pip install datatrove)."""

from itertools import islice
from tempfile import TemporaryDirectory

from datatrove.data import Document, DocumentsPipeline  # pyright: ignore
from datatrove.pipeline.base import PipelineStep  # pyright: ignore
from demo import save_parser_of_text

from treeparse import Parser
from treeparse.corpus import parse_documents
from treeparse.corpus.writers import ConlluWriter


class ParseTrees(PipelineStep):
    """Puts CoNLL-U into the metadata; raw text needs a tokenizer, such as ``spacy:en``."""

    name, type = "trees", "parse"

    def __init__(self, model: str, tokenizer: str | None = None) -> None:
        super().__init__()
        self.model, self.tokenizer = model, tokenizer

    def run(self, data: DocumentsPipeline, rank: int = 0, world_size: int = 1) -> DocumentsPipeline:
        """Yield the documents."""
        parser, writer, rest = Parser.from_pretrained(self.model), ConlluWriter(), iter(data or ())
        while documents := [*islice(rest, 1000)]:
            texts, ids = zip(*((each.text, each.id) for each in documents), strict=True)
            parsed = parse_documents(parser, texts, ids=ids, tokenizer=self.tokenizer)
            for document, sentences in zip(documents, parsed, strict=True):
                document.metadata["conllu"] = writer.pack(sentences)
                yield document


if __name__ == "__main__":
    texts = ["the dog sees a cat .", "she sleeps .\nthe cat sleeps ."]
    with TemporaryDirectory() as model:
        save_parser_of_text(model)
        for each in ParseTrees(model).run(Document(text, f"doc-{number}") for number, text in enumerate(texts)):
            print(each.metadata["conllu"])

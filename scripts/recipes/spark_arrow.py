"""A column of trees in Spark, by ``mapInArrow`` (pip install pyspark pandas pyarrow; it needs Java, too)."""

from collections.abc import Iterator
from tempfile import TemporaryDirectory

import pyarrow as pa
from demo import save_parser_of_text
from pyspark.sql import DataFrame, SparkSession  # pyright: ignore
from pyspark.sql.types import StringType, StructField, StructType  # pyright: ignore

from treeparse import Parser
from treeparse.corpus import parse_documents
from treeparse.corpus.writers import ConlluWriter


def with_trees(frame: DataFrame, model: str, tokenizer: str | None = None) -> DataFrame:
    """Return a frame with a column ``conllu``: the sentences of the column ``text`` with their trees."""

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parser, writer = Parser.from_pretrained(model), ConlluWriter()
        for batch in batches:
            parsed = parse_documents(parser, batch["text"].to_pylist(), tokenizer=tokenizer)
            yield batch.append_column("conllu", pa.array([writer.pack(each) for each in parsed], pa.string()))

    return frame.mapInArrow(parse, StructType([*frame.schema.fields, StructField("conllu", StringType())]))


if __name__ == "__main__":
    session = SparkSession.builder.master("local[1]").getOrCreate()
    texts = [("the dog sees a cat .",), ("she sleeps .\nthe cat sleeps .",)]
    with TemporaryDirectory() as model:
        save_parser_of_text(model)
        for row in with_trees(session.createDataFrame(texts, "text string"), model).collect():
            print(row["conllu"])

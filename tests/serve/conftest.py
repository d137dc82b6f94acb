"""A server of two models, one of which predicts tags, for all tests that only ask it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

pytest.importorskip("aiohttp")

from helpers.parsers import CONFIG, random_parser
from helpers.served import Server, served

from treeparse.model import Parser
from treeparse.model.tagging import TagWeights


@pytest.fixture(scope="session")
def parser() -> Parser:
    return random_parser()


@pytest.fixture(scope="session")
def tagger() -> Parser:
    return random_parser(replace(CONFIG, tags=TagWeights(upos=1.0)))


@pytest.fixture(scope="session")
def server(parser: Parser, tagger: Parser) -> Iterator[Server]:
    with served({"plain-one": parser, "tagger": tagger}) as server:
        yield server

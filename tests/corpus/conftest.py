"""A small parser for the tests of corpora."""

import pytest
from helpers.parsers import random_parser

from treeparse.model import Parser


@pytest.fixture(scope="session")
def parser() -> Parser:
    return random_parser()

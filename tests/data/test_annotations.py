"""What is added to sentences stands where it should, and nothing else changes."""

import math
from pathlib import Path

import pytest
from helpers.parsed_files import MULTIWORD, written

from treeparse.data.annotations import with_comments, with_misc, with_probabilities
from treeparse.data.conllu import ConlluSentence, read_conllu
from treeparse.data.parses import Parse

ENTRIES = [{"A": "1"}, {"A": "2"}, {"A": "3"}, {"A": "4"}]


def read(tmp_path: Path, text: str) -> ConlluSentence:
    [sentence] = read_conllu(written(tmp_path / "in.conllu", text))
    return sentence


def endings(text: str) -> dict[str, str]:
    return {"lines": text, "crlf": text.replace("\n", "\r\n"), "byte order mark": "\ufeff" + text, "open": text[:-2]}


@pytest.mark.parametrize("name", endings(""))
def test_comments_stand_behind_the_others_once(tmp_path: Path, name: str) -> None:
    text = MULTIWORD.replace("# sent_id", "# entropy=7\n#  entropy = 8\n# sent_id")
    found = with_comments(read(tmp_path, endings(text)[name]), {"entropy": "1.5", "none": None, "b": "c = d"})
    expected = MULTIWORD.replace("# text = dámelo ya\n", "# text = dámelo ya\n# entropy = 1.5\n# b = c = d\n")
    assert found.text == endings(expected)[name]


def test_a_sentence_without_comments_gets_some(tmp_path: Path) -> None:
    found = with_comments(read(tmp_path, "\ufeff\n1\ta" + "\t_" * 8 + "\n\n"), {"b": "c"})
    assert found.text == "\ufeff\n# b = c\n1\ta" + "\t_" * 8 + "\n\n"


@pytest.mark.parametrize("name", endings(""))
@pytest.mark.parametrize(
    ("before", "after"),
    [("_", "A=2"), ("x", "x|A=2"), ("A=9|b=c=d|A=7|AA=1", "b=c=d|AA=1|A=2"), ("A", "A=2")],
)
def test_misc_keeps_all_but_these_keys(tmp_path: Path, name: str, before: str, after: str) -> None:
    rows = MULTIWORD.split("\n")
    old = [row.removesuffix("\t_") + f"\t{before}" if row.startswith("2\t") else row for row in rows]
    found = with_misc(read(tmp_path, endings("\n".join(old))[name]), ENTRIES)
    new = {"1": "A=1", "2": after, "3": "A=3", "4": "A=4"}
    expected = [
        row.removesuffix("\t_") + f"\t{new[row.split(chr(9))[0]]}" if row.split("\t")[0] in new else row for row in rows
    ]
    assert found.text == endings("\n".join(expected))[name]


def test_probabilities_of_a_parse(tmp_path: Path) -> None:
    sentence = read(tmp_path, "1\ta" + "\t_" * 7 + "\tSpaceAfter=No|ArcProb=1\n2\tb" + "\t_" * 8 + "\n\n")
    parse = Parse(("a", "b"), (2, 0), ("x", "root"), -50.0, 1.0, None, None, None, (0.97306, 1.0), (1e-9, 0.5), 2 / 3)
    assert with_probabilities(sentence, parse).text.split("\n") == [
        f"# tree_prob = {math.exp(-50):.6g}",
        "# entropy = 0.666667",
        "1\ta" + "\t_" * 7 + "\tSpaceAfter=No|ArcProb=0.9731|LabelProb=0.0000",
        "2\tb" + "\t_" * 7 + "\tArcProb=1.0000|LabelProb=0.5000",
        *("", ""),
    ]
    with pytest.raises(ValueError, match="no probabilities"):
        with_probabilities(sentence, Parse(("a", "b"), (2, 0), ("x", "root"), -50.0, 1.0))

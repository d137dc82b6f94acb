import pytest

from treeparse.data.tokenised import read_text
from treeparse.errors import DataError


def test_text_has_a_tokenised_sentence_a_line(tmp_path):
    path = tmp_path / "text"
    path.write_bytes("\ufeff\n  The  cat\tsat .\r\n \t\n# 1\u00a0000 \u2028\n\nlast".encode())
    sentences = list(read_text(path))
    forms = [("The", "cat", "sat", "."), ("#", "1\u00a0000", "\u2028"), ("last",)]
    assert [sentence.words.forms for sentence in sentences] == forms
    assert [(sentence.sent_id, sentence.line) for sentence in sentences] == [("1", 2), ("2", 4), ("3", 6)]
    assert sentences[0].text.startswith("# sent_id = 1\n# text = The cat sat .\n1\tThe\t")


def test_faulty_text_is_named(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"good\nbad \xe9\n")
    with pytest.raises(DataError, match=r"text:2: byte 5 of the line \(0xe9\) is not valid UTF-8"):
        list(read_text(path))
    path.write_text("\ufeffone\n\ufefftwo\n", encoding="utf-8")
    with pytest.raises(DataError, match="text:2: the line begins with a byte order mark"):
        list(read_text(path))
    path.write_bytes(b" \n\n")
    with pytest.raises(DataError, match="text: the file holds no sentence"):
        list(read_text(path))

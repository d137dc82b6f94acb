"""Files that are not UTF-8 text, or compressed under another name: a sentence says where and what to do."""

import gzip
import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from treeparse.data.conllu import ConlluSentence, read_conllu, scan_conllu
from treeparse.data.text.tokenised import read_text
from treeparse.errors import DataError

TURKISH = "# text = Çiğ köfte\n1\tÇiğ\t_\t_\t_\t_\t2\tamod\t_\t_\n2\tköfte\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
PLAIN = "# text = a\n1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n\n"


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "iso8859-9", "cp1251", "gbk", "shift-jis"])
def test_a_legacy_encoding_is_refused_in_a_sentence_that_names_the_line(tmp_path: Path, encoding: str) -> None:
    text = {"cp1251": "Он читал", "gbk": "我爱你", "shift-jis": "私は猫"}.get(encoding, "déjà vü")
    data = (PLAIN * 1000 + TURKISH.replace("Çiğ", text).replace("köfte", text) * 100).encode(encoding)
    path = written(tmp_path / "old.conllu", data)
    with pytest.raises(DataError, match="convert the file, for example by iconv") as caught:
        list(read_conllu(path))
    assert (caught.value.source, caught.value.line) == (str(path), 3001)


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-32"])
@pytest.mark.parametrize("read", [read_conllu, read_text])
def test_utf_16_is_refused_in_a_sentence_that_names_the_file(tmp_path: Path, encoding: str, read) -> None:
    path = written(tmp_path / "wide", (TURKISH * 100).encode(encoding))
    with pytest.raises(DataError, match=f"^{path}:1: .*convert the file, for example by iconv"):
        list(read(path))


@pytest.mark.parametrize("around", [TURKISH, PLAIN], ids=["beyond ASCII", "ASCII"])
def test_a_stray_byte_is_a_fault_of_its_line(tmp_path: Path, around: str) -> None:
    faulty = PLAIN.encode().replace(b"\ta\t", b"\t\xe9\t")
    first, *between, last = scan_conllu(written(tmp_path / "file", around.encode() * 9 + faulty + around.encode() * 9))
    assert isinstance(first, ConlluSentence) and isinstance(last, ConlluSentence)
    faults = [fault for each in between if isinstance(each, tuple) for fault in each]
    line = 9 * around.count("\n") + 2
    assert [each.line for each in faults] == [line] and "byte 3 of the line (0xe9)" in faults[0].problem


def test_many_stray_bytes_in_a_file_that_is_mostly_utf_8_are_faults_of_their_lines(tmp_path: Path) -> None:
    bad = TURKISH.replace("ğ", "g").encode("latin-1")
    found = list(scan_conllu(written(tmp_path / "file", (bad + TURKISH.encode() * 2) * 50)))
    assert [isinstance(each, tuple) for each in found] == [True, False, False] * 50


def test_sentences_may_be_left_out_for_their_bytes(tmp_path: Path) -> None:
    """What --skip-invalid has to read: a file of few letters beyond ASCII, all of them bad."""
    bad = TURKISH.replace("ğ", "g").encode("latin-1")
    path, left_out = written(tmp_path / "file", PLAIN.encode() + bad * 5 + PLAIN.encode()), list[DataError]()
    assert len(list(read_conllu(path, on_invalid=left_out.append))) == 2
    assert [fault.line for fault in left_out] == [4, 8, 12, 16, 20]


def test_a_compressed_file_of_another_name_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.conllu", gzip.compress(TURKISH.encode()))
    with pytest.raises(DataError, match=r"a\.conllu: this is compressed by gzip: give it a name that ends in \.gz"):
        list(read_conllu(path))


def test_compressed_bytes_on_standard_input_are_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.BytesIO(gzip.compress(TURKISH.encode()))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stdin))
    with pytest.raises(DataError, match=r"<stdin>: this is compressed by gzip: .* gzip -dc"):
        list(read_conllu("-"))

"""Files that are not UTF-8 text, or compressed under another name: a sentence says where and what to do."""

import gzip
import io
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers.parsed_files import written

from treeparse.data.conllu import read_conllu
from treeparse.data.tokenised import read_text
from treeparse.errors import DataError

TURKISH = "# text = Çiğ köfte\n1\tÇiğ\t_\t_\t_\t_\t2\tamod\t_\t_\n2\tköfte\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
PLAIN = "# text = a\n1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n\n"


@pytest.mark.parametrize("encoding", ["latin-1", "cp1251", "gbk"])
def test_a_legacy_encoding_is_refused_in_a_sentence_that_names_the_line(tmp_path: Path, encoding: str) -> None:
    text = {"cp1251": "Он читал", "gbk": "我爱你"}.get(encoding, "déjà vü")
    data = (PLAIN * 1000 + TURKISH.replace("Çiğ", text).replace("köfte", text) * 100).encode(encoding)
    path = written(tmp_path / "old.conllu", data)
    with pytest.raises(DataError, match="convert the file, for example by iconv") as caught:
        list(read_conllu(path))
    assert (caught.value.source, caught.value.line) == (path, 3001)


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-32"])
@pytest.mark.parametrize("read", [read_conllu, read_text])
def test_utf_16_is_refused_in_a_sentence_that_names_the_file(tmp_path: Path, encoding: str, read) -> None:
    path = written(tmp_path / "wide", (TURKISH * 100).encode(encoding))
    with pytest.raises(DataError, match=f"^{path}:1: .*convert the file, for example by iconv"):
        list(read(path))


def test_a_compressed_file_of_another_name_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.conllu", gzip.compress(TURKISH.encode()))
    with pytest.raises(DataError, match=r"a\.conllu: this is compressed by gzip: give it a name that ends in \.gz"):
        list(read_conllu(path))


def test_compressed_bytes_on_standard_input_are_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.BytesIO(gzip.compress(TURKISH.encode()))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=stdin))
    with pytest.raises(DataError, match=r"<stdin>: this is compressed by gzip: .* gzip -dc"):
        list(read_conllu("-"))


def test_so_are_those_of_a_file_that_standard_input_is_redirected_from(tmp_path: Path) -> None:
    path = written(tmp_path / "a.conllu.gz", gzip.compress(TURKISH.encode()))
    program = "from treeparse.data.conllu import read_conllu; list(read_conllu('/dev/stdin'))"
    with open(path, "rb") as stdin:
        done = subprocess.run([sys.executable, "-c", program], stdin=stdin, capture_output=True, text=True, timeout=60)
    assert "DataError: /dev/stdin: this is compressed by gzip: decompress it in the pipe by gzip -dc" in done.stderr

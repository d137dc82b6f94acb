"""Files that are not UTF-8 text: each gives one sentence with the command that mends it."""

import gzip
import shutil
import subprocess
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from treeparse.data.conllu import ConlluSentence, read_conllu, scan_conllu
from treeparse.data.text.formats import WrongFormatError
from treeparse.data.text.tokenised import read_text
from treeparse.data.validation import TreeCheck
from treeparse.errors import DataError

TURKISH = "# text = Çiğ köfte\n1\tÇiğ\t_\t_\t_\t_\t2\tamod\t_\t_\n2\tköfte\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
PLAIN = "# text = a\n1\ta\t_\t_\t_\t_\t0\troot\t_\t_\n\n"
WORDS = ("Çiğ", "köfte")


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def run(command: str) -> None:
    """Run a command as a user copies it."""
    if shutil.which("iconv") is None:
        pytest.skip("iconv is not installed")
    subprocess.run(command, shell=True, check=True)


def fault_of(path: Path) -> str:
    """The only fault of a file."""
    *sentences, faults = scan_conllu(path, TreeCheck())
    assert all(isinstance(each, ConlluSentence) for each in sentences)
    assert isinstance(faults, tuple)
    [fault] = faults
    assert isinstance(fault, WrongFormatError) and fault.line is None
    return str(fault)


@pytest.mark.parametrize(
    ("encoding", "mark", "name"),
    [
        ("UTF-16-LE", "\ufeff", "UTF-16"),
        ("UTF-16-BE", "\ufeff", "UTF-16"),
        ("UTF-16-LE", "", "UTF-16LE"),
        ("UTF-16-BE", "", "UTF-16BE"),
        ("UTF-32-LE", "\ufeff", "UTF-32"),
        ("UTF-32-BE", "\ufeff", "UTF-32"),
    ],
)
def test_utf_16_is_named_and_its_command_converts_it(tmp_path: Path, encoding: str, mark: str, name: str) -> None:
    path = written(tmp_path / "my file.conllu", (mark + TURKISH * 100).encode(encoding))
    command = f"iconv -f {name} -t UTF-8 '{path}' > '{tmp_path}/my file.utf8.conllu'"
    assert fault_of(path) == f"{path}: this is {name}, not UTF-8: convert it by {command}"
    run(command)
    assert [sentence.words.forms for sentence in read_conllu(tmp_path / "my file.utf8.conllu")] == [WORDS] * 100


def test_tokenised_chinese_in_utf_16_without_a_mark_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "text", "我 爱 你 。\n".encode("UTF-16-LE") * 3)
    with pytest.raises(WrongFormatError, match="this is UTF-16LE, not UTF-8"):
        list(read_text(path))


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "iso8859-9", "cp1251", "gbk", "shift-jis"])
def test_a_legacy_encoding_is_one_fault_that_names_its_first_line(tmp_path: Path, encoding: str) -> None:
    text = {"cp1251": "Он читал", "gbk": "我爱你", "shift-jis": "私は猫"}.get(encoding, "déjà vü")
    data = (PLAIN * 1000 + TURKISH.replace("Çiğ", text).replace("köfte", text) * 100).encode(encoding)
    path = written(tmp_path / "old.conllu", data)
    command = f"iconv -f WINDOWS-1252 -t UTF-8 {path} > {tmp_path}/old.utf8.conllu"
    assert fault_of(path) == (
        f"{path}: this is not UTF-8 (line 3001 is the first that is not), perhaps Windows-1252 or Latin-1: convert it "
        f"by {command}"
    )


def test_a_compressed_file_in_a_legacy_encoding_is_converted_in_a_pipe(tmp_path: Path) -> None:
    path = written(tmp_path / "old.conllu.gz", gzip.compress(TURKISH.replace("ğ", "g").encode("latin-1") * 9))
    [_, command] = fault_of(path).split(": convert it by ")
    assert command == f"gzip -dc {path} | iconv -f WINDOWS-1252 -t UTF-8 > {tmp_path}/old.utf8.conllu"
    run(command)
    assert len(list(read_conllu(tmp_path / "old.utf8.conllu"))) == 9


@pytest.mark.parametrize("around", [TURKISH, PLAIN], ids=["beyond ASCII", "ASCII"])
def test_a_stray_byte_is_a_fault_of_its_line(tmp_path: Path, around: str) -> None:
    faulty = PLAIN.encode().replace(b"\ta\t", b"\t\xe9\t")
    first, *between, last = scan_conllu(written(tmp_path / "file", around.encode() * 9 + faulty + around.encode() * 9))
    assert isinstance(first, ConlluSentence) and isinstance(last, ConlluSentence)
    faults = [fault for each in between if isinstance(each, tuple) for fault in each]
    line = 9 * around.count("\n") + 2
    assert [(each.line, each.problem) for each in faults] == [(line, "byte 3 of the line (0xe9) is not valid UTF-8")]


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


@pytest.mark.parametrize("inner", ["a.conllu.zip", "a.zip", "a.conllu"])
def test_a_zip_archive_is_named_and_its_command_unpacks_it(tmp_path: Path, inner: str) -> None:
    path = tmp_path / inner
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.conllu", TURKISH * 1000)
    target = tmp_path / ("a.unzipped.conllu" if inner == "a.conllu" else "a.conllu")
    assert fault_of(path) == f"{path}: this is a zip archive: unpack it by unzip -p {path} > {target}"
    with pytest.raises(WrongFormatError, match="this is a zip archive"):
        list(read_text(path))


def test_a_compressed_file_of_another_name_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.conllu", gzip.compress(TURKISH.encode()))
    remedy = "give it a name that ends in .gz, and it is decompressed"
    assert fault_of(path) == f"{path}: this is compressed by gzip: {remedy}"


def test_reading_ahead_takes_bounded_memory(tmp_path: Path) -> None:
    """A UTF-8 file with a stray byte at its start, of 20 MB."""
    block = TURKISH.encode() * 1000
    path = written(tmp_path / "file", PLAIN.encode().replace(b"\ta\t", b"\t\xe9\t") + block * 200)
    tracemalloc.start()
    for _, _ in zip(scan_conllu(path), range(50), strict=False):
        pass
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 2**20

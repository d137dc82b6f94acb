"""The folders of models that commands are given."""

from pathlib import Path

import pytest
from helpers.parsed_files import written

from treeparse.cli.main import main


@pytest.mark.parametrize(
    "command",
    [
        "predict nosuch {source}",
        "kbest nosuch {source} -k 3",
        "sample nosuch {source} -k 3",
        "rank nosuch {source}",
        "suspects nosuch {source}",
        "evaluate --model nosuch {source}",
        "evaluate {source} --model {model} --model nosuch",
        "render --model nosuch {source}",
        "calibrate nosuch {source} -o new",
        "rerank {source} --model nosuch",
        "serve nosuch",
        "export nosuch",
        "card nosuch",
        "push nosuch organisation/name",
    ],
)
def test_a_folder_that_is_missing_is_named_as_such(
    command: str, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = written(tmp_path / "gold.conllu", "1\tRun\t_\t_\t_\t_\t0\troot\t_\t_\n\n")
    assert main(command.format(model=model, source=source).split()) == 2
    problem = "There is no folder nosuch: name the folder of a model, or of its run."
    assert capsys.readouterr() == ("", f"treeparse: error: {problem}\n")

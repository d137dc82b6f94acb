"""``treeparse config``: print a configuration that ships with treeparse."""

import argparse
import sys
from pathlib import Path

NAME = "config"
HELP = "print a shipped configuration, or list them"
EPILOG = """examples:
  treeparse config                    list the shipped configurations
  treeparse config fast > my.yaml     take one as the start of your own"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="a configuration's name; none lists them all")


def shipped_configs() -> dict[str, Path]:
    """The shipped configurations by name: ``treeparse/configs`` of a wheel, or ``configs`` of a checkout."""
    package = Path(__file__).resolve().parents[1]
    folders = (package / "configs", package.parent / "configs")
    folder = next((folder for folder in folders if folder.is_dir()), folders[0])
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def shipped_config(name: str) -> Path:
    """The file of a shipped configuration, by its name with or without ``.yaml``; raises where there is none."""
    configs = shipped_configs()
    stem = name.removesuffix(".yaml")
    if stem not in configs:
        from treeparse.core import TreeparseError, did_you_mean

        problem = f"There is no configuration {name!r}; there are: {', '.join(configs)}"
        raise TreeparseError(problem + (did_you_mean(stem, configs) or "."))
    return configs[stem]


def config_file(name: str) -> Path:
    """A config's file by its path, or by the name of one that is shipped; a path that does not exist stays."""
    path = Path(name)
    return path if path.is_file() or path.name != name else shipped_config(name)


def run(args: argparse.Namespace) -> int:
    """Print one configuration as it stands in its file, or every name with its file's first comment."""
    configs = shipped_configs()
    if args.name is None:
        width = max(map(len, configs), default=0)
        for name, path in configs.items():
            print(f"{name:<{width}}  {_summary(path)}".rstrip())
    else:
        sys.stdout.write(shipped_config(args.name).read_text(encoding="utf-8"))
    return 0


def _summary(path: Path) -> str:
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    return first.removeprefix("#").strip() if first.startswith("#") else ""

"""``treeparse serve``: parse over HTTP, with the requests and answers of UDPipe's REST service."""

import argparse
import os
from collections.abc import Sequence

from treeparse import terminal
from treeparse.cli.common import add_import_argument, counted, positive, real, whole
from treeparse.cli.models import add_precision_argument, check_models, load_models, tokenizer_of
from treeparse.data.raw_text import tokenizer_named
from treeparse.errors import TreeparseError

try:
    from treeparse.serve import HOST, PORT, Limits, serve
except ModuleNotFoundError as error:
    raise TreeparseError(f"serve needs {error.name}: pip install 'treeparse[serve]'.") from error

LONGEST_TIME = 86_400  # seconds
_seconds = real(f"a number of seconds above 0 and up to {LONGEST_TIME}", lambda value: 0 < value <= LONGEST_TIME)
LIMITS = {  # the type, default, metavar and meaning of each option
    "--max-megabytes": (positive, Limits.request_bytes >> 20, "N", "megabytes of a request"),
    "--max-words": (
        positive,
        Limits.request_words,
        "N",
        "words of a request; a list counts words once a tree",
    ),
    "--max-sentence-words": (positive, Limits.sentence_words, "N", "words of a sentence"),
    "--max-trees": (positive, Limits.trees, "K", "trees of a list"),
    "--waiting": (positive, Limits.waiting, "N", "requests that wait for the parser"),
    "--seconds": (_seconds, Limits.seconds, "S", "seconds for a request to wait and be parsed"),
    "--client-seconds": (_seconds, Limits.client_seconds, "S", "seconds for a client to send a request"),
}

EPILOG = """examples:
  treeparse serve runs/english
  treeparse serve english-ewt=runs/ewt latin=runs/perseus --port 8080 --threads 4
  treeparse serve runs/english --host 0.0.0.0 --max-words 20000 --seconds 10

  curl -F data=@text.conllu http://127.0.0.1:8001/process
  curl -F data=@text.txt -F input=horizontal -F probabilities=1 http://127.0.0.1:8001/process
  curl -F data=@text.conllu -F kbest=10 -F output=jsonl http://127.0.0.1:8001/process
  curl -F data=@text.conllu -F sample=10 -F seed=1 http://127.0.0.1:8001/process
  curl -F data=@partly.conllu -F keep=heads -F output=json http://127.0.0.1:8001/process
  curl -F data=@raw.txt -F tokenizer= -F tagger= -F parser= http://127.0.0.1:8001/process
  curl http://127.0.0.1:8001/models

Requests that name no model use the first one. A model is named after its folder, or after the folder above if its
folder is called model; NAME=FOLDER gives another name. Clients of UDPipe's service send CoNLL-U, or raw text with the
parameter tokenizer to a server with --tokenizer, and get that service's JSON: model, acknowledgements, result.
/openapi.json describes all parameters, and so does help("treeparse.serve").

Simultaneous requests are parsed in batches, in the order in which they come; predict gives the same trees. Faulty
requests get a sentence: 400, 404 (unknown model), 413 (too long), 503 with Retry-After (too many requests wait,
or --seconds are over); connections that are idle for --client-seconds are closed. /health answers 200 while the parser
works, /metrics has counts for Prometheus. After Ctrl-C or SIGTERM the server finishes the requests in progress and
ends; a second signal ends it at once.

The server has no encryption and no authentication: with another --host than the default, put a proxy before it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("models", nargs="+", metavar="[NAME=]FOLDER", help="a folder of a model or run, and its name")
    parser.add_argument("--host", default=HOST, help=f"the address to listen at (default: {HOST}, this machine alone)")
    parser.add_argument(
        "--port", type=whole(0, 2**16 - 1), default=PORT, metavar="N", help=f"0 for any free one (default: {PORT})"
    )
    parser.add_argument(
        "--tokenizer", metavar="NAME", help="for raw text: spacy:LANGUAGE, spacy:PIPELINE or stanza:LANGUAGE"
    )
    parser.add_argument(
        "--allow-origin", action="append", default=[], metavar="SITE", help="https://example.org may use it; * for all"
    )
    limits = parser.add_argument_group("limits")
    for name, (kind, default, metavar, meaning) in LIMITS.items():
        help = f"{meaning} (default: {default})"
        limits.add_argument(name, type=kind, default=default, metavar=metavar, help=help)
    add_precision_argument(parser)
    add_import_argument(parser)
    parser.set_defaults(combine=None)


def run(args: argparse.Namespace) -> int:
    """Load the models and serve them."""
    folders = named_folders(args.models)
    check_models([*folders.values()], args)
    limits = Limits(
        request_bytes=args.max_megabytes << 20,
        request_words=args.max_words,
        sentence_words=args.max_sentence_words,
        trees=args.max_trees,
        waiting=args.waiting,
        seconds=args.seconds,
        client_seconds=args.client_seconds,
    )
    tokenizer = args.tokenizer or tokenizer_of([*folders.values()])
    split = None if tokenizer is None else tokenizer_named(tokenizer)
    models = {name: load_models([folder], args) for name, folder in folders.items()}

    def ready(address: str) -> None:
        if not args.quiet:
            names = f"{counted(len(models), 'model')}, {', '.join(models)}"
            terminal.warn(f"treeparse: serving {names}, at {address}/process")

    site = {"host": args.host, "port": args.port, "origins": args.allow_origin}
    serve(models, **site, limits=limits, tokenizer=split, ready=ready)
    return 0


def named_folders(arguments: Sequence[str]) -> dict[str, str]:
    """Return the folder of each model by the model's name, in order."""
    folders: dict[str, str] = {}
    for argument in arguments:
        name, equals, folder = argument.partition("=")
        if not equals or os.path.isdir(argument):
            above, last = os.path.split(os.path.abspath(argument))
            name, folder = (os.path.basename(above) or last) if last == "model" else last, argument
        if not name or not folder:
            raise TreeparseError(f"A model must be NAME=FOLDER or FOLDER, got {argument!r}.")
        if name in folders:
            raise TreeparseError(f"{folders[name]} and {folder} are both called {name}: give names, NAME=FOLDER.")
        folders[name] = folder
    return folders

"""Corpora parsed by more than this process, on the command line: by several of this machine, or by a cluster."""

import argparse
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from treeparse.cli.common import modules_of_current_folder
from treeparse.cli.models import load_models
from treeparse.corpus.cluster import RayCluster, parse_on_ray
from treeparse.corpus.processes import parse_with_jobs
from treeparse.corpus.progress import CorpusObserver, CorpusSummary
from treeparse.corpus.request import CorpusPart, CorpusRequest
from treeparse.corpus.storage import is_url
from treeparse.errors import TreeparseError
from treeparse.model.folder.files import WEIGHTS, model_folder
from treeparse.model.folder.storage import file_digest

MANIFEST = "manifest.jsonl"  # in the folder of the outputs


def parse_in_processes(
    models: Sequence[str],
    request: CorpusRequest,
    parts: Sequence[CorpusPart],
    observer: CorpusObserver,
    args: argparse.Namespace,
) -> CorpusSummary:
    """Parse in several processes; each one loads the models."""
    threads = args.threads or max(1, (os.cpu_count() or 1) // args.jobs)
    with modules_of_current_folder():  # in the processes, too
        return parse_with_jobs(_loader(models, args), request, parts, args.jobs, threads=threads, observer=observer)


def parse_on_cluster(
    models: Sequence[str], request: CorpusRequest, observer: CorpusObserver, args: argparse.Namespace
) -> CorpusSummary:
    """Parse on a Ray cluster; each actor loads the models."""
    if args.manifest is None and is_url(str(request.output)):
        raise TreeparseError(
            f"The manifest grows by lines, which the storage of {request.output} may not allow: name a file of this "
            "machine by --manifest."
        )
    folders = [os.path.abspath(model) for model in models]
    digests = {folder: file_digest(model_folder(folder) / WEIGHTS) for folder in folders}
    gpus = 1 if str(args.device or "").startswith("cuda") else 0
    cluster = RayCluster(args.ray, args.jobs, args.threads or 1, gpus)
    manifest = args.manifest or Path(request.output) / MANIFEST
    options = {"manifest": manifest, "models": digests, "observer": observer}
    return parse_on_ray(_loader(folders, args), request, cluster, **options)


def _loader(models: Sequence[str], args: argparse.Namespace) -> partial:
    quiet = argparse.Namespace(**{**vars(args), "quiet": True})
    return partial(load_models, [*models], quiet, mapped=True)

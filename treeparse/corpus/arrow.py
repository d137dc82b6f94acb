"""Arrow's library, which formats in columns need, and its errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from treeparse.errors import DataError, TreeparseError


@contextmanager
def parquet_errors(path: str | Path) -> Iterator[None]:
    """Turn the library's errors into one that names the file.

    Raises:
        TreeparseError: the library is not installed.
        DataError: the file is damaged.
    """
    try:
        from pyarrow import ArrowException
    except ImportError as error:
        problem = f"{path}: Parquet needs pyarrow, which is not installed: pip install treeparse[corpus]"
        raise TreeparseError(problem) from error
    try:
        yield
    except (ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # an error of the disk, not of the format
            raise
        raise DataError(f"this is no whole Parquet file ({error!s:.200})", source=str(path)) from error

"""Settings that name a custom class by ``class_path``, with its arguments as ``init_args``."""

import inspect
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from treeparse.errors import TreeparseError


@dataclass(frozen=True)
class ClassPathConfig:
    """A custom class and its settings; `of` makes it from the class. Raises unless the class has been imported.

    Attributes:
        class_path: the path of the class, such as mymodule.MyEncoder.
        init_args: the settings of the class, plain data.
    """

    base: ClassVar[type]  # from which the class must be derived
    part: ClassVar[str]  # of the parser: encoder or scorer
    supplied: ClassVar[tuple[str, ...]]  # the leading arguments of ``__init__``, which are no settings

    class_path: str
    init_args: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            plain = json.loads(json.dumps(dict(self.init_args), allow_nan=False))
        except (TypeError, ValueError) as error:
            raise TreeparseError(
                f"The init_args of {self.class_path!r:.100} must be numbers, text, lists or mappings ({error})."
            ) from error
        object.__setattr__(self, "init_args", plain)
        self._check_settings(self.find_class(self.class_path), plain)

    @classmethod
    def of(cls, custom: type, **settings: Any) -> Self:
        """Return the config of a class with these settings, and with the class's defaults for all others.

        Raises unless the class takes the settings and is at the top of a module, so that it can be imported again.
        """
        path = f"{custom.__module__}.{custom.__qualname__}"
        if custom.__module__ == "__main__" or "." in custom.__qualname__:
            raise TreeparseError(
                f"{path} must be a class at the top of a module, because a saved model finds it there."
            )
        cls._check_settings(custom, settings)
        parameters = [*inspect.signature(custom).parameters.values()][len(cls.supplied) :]
        defaults = {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}
        return cls(path, defaults | settings)

    @classmethod
    def find_class(cls, class_path: str) -> Any:
        """Return the class of a path. Its module must have been imported: this imports nothing and runs nothing."""
        path, _, name = class_path.rpartition(".")
        module = sys.modules.get(path)
        if module is None:
            raise TreeparseError(
                f"The module of the {cls.part} {class_path!r:.100} is not imported, and loading a model imports no "
                f"code. If you trust it: import {path:.100} first; in commands, --import {path:.100}."
            )
        custom = vars(module).get(name)  # not getattr, which could run a module's code
        if not (isinstance(custom, type) and issubclass(custom, cls.base)):
            raise TreeparseError(
                f"The {cls.part} {class_path!r:.100} must be the name of a subclass of treeparse.model."
                f"{cls.base.__name__} in its module."
            )
        return custom

    def shaping(self) -> dict[str, Any]:
        """Return all settings by the names of their options: any may decide the shapes of weights."""
        settings = {f"init_args.{name}": value for name, value in self.init_args.items()}
        return {"class_path": self.class_path, **settings}

    @classmethod
    def _check_settings(cls, custom: type, settings: Mapping[str, Any]) -> None:
        """Raise unless the settings are the class's arguments after those that are supplied."""
        try:
            inspect.signature(custom).bind(*(None for _ in cls.supplied), **settings)
        except TypeError as error:
            raise TreeparseError(
                f"{custom.__module__}.{custom.__qualname__} does not take its settings ({error}): they are the "
                f"arguments of its __init__ after {' and '.join(cls.supplied)}."
            ) from error

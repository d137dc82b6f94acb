"""Which encoder and which scorer the settings of a run name, and the settings that these have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from jsonargparse import ArgumentParser

from treeparse.errors import TreeparseError, did_you_mean
from treeparse.model.class_path import ClassPathConfig
from treeparse.model.config import DEFAULT_ENCODER, DEFAULT_SCORER, ENCODERS, SCORERS
from treeparse.model.encoders.own import OwnEncoderConfig
from treeparse.model.scorers.own import OwnScorerConfig
from treeparse.training.settings.arguments import Option, load_yaml
from treeparse.user_code import import_code

Names = tuple[str, ...]  # the ``type`` or the ``class_path`` of each of the `COMPONENTS`


@dataclass(frozen=True)
class Component:
    """A part of the model that a config chooses by ``type`` or by the path of a custom class.

    Attributes:
        name: encoder or scorer.
        kinds: the settings of the package's own, by their ``type``.
        default: the ``type`` of a config that names none.
        custom: the class of the settings of a custom one.
    """

    name: str
    kinds: Mapping[str, Any]
    default: str
    custom: type[ClassPathConfig]

    @property
    def key(self) -> str:
        """The key of its settings."""
        return f"model.{self.name}"

    def named(self, settings: Mapping[Any, Any]) -> str | None:
        """Return the name in a mapping of settings; a path wins, as the settings beside it are ``init_args``."""
        section: Any = settings
        for key in self.key.split("."):
            section = section.get(key)
            if not isinstance(section, Mapping):
                return None
        name = section.get("class_path") or section.get("type")
        return None if name is None else str(name)

    def named_by_options(self, options: Sequence[Option]) -> str | None:
        """Return the name in the options, the last one's."""
        chosen = None
        for option in options:
            if option.key in ("model", self.key, f"{self.key}.type", f"{self.key}.class_path"):
                for text in option.values:
                    settings: Any = _mapping(text) if text.startswith("{") else text
                    for part in reversed(option.key.split(".")):
                        settings = {part: settings}
                    chosen = self.named(settings) or chosen
        return chosen

    def add_arguments(self, parser: ArgumentParser, name: str) -> None:
        """Declare the settings of the one of a name; raise if there is none such."""
        if name in self.kinds:
            parser.add_class_arguments(self.kinds[name], self.key)
        elif "." in name:
            import_code(name.rpartition(".")[0])
            parser.add_argument(
                f"--{self.key}.class_path", type=str, default=name, help=f"the class of a custom {self.name}"
            )
            try:
                parser.add_class_arguments(
                    self.custom.find_class(name),
                    f"{self.key}.init_args",
                    skip={*self.custom.supplied},
                    instantiate=False,
                )
            except ValueError as error:
                raise TreeparseError(
                    f"The arguments of {name} must have types, so that they can be settings: {error}"
                ) from error
        else:
            raise TreeparseError(
                f"Unknown {self.name} {name!r:.100}. {self.name.title()}s: {', '.join(self.kinds)}, or a custom class "
                f"by {self.key}.class_path, mymodule.My{self.name.title()}{did_you_mean(name, self.kinds) or '.'}"
            )

    def config(self, values: Any) -> Any:
        """Return the settings from the values of the arguments of `add_arguments`."""
        if not isinstance(values, dict):
            return values
        return self.custom.of(self.custom.find_class(values["class_path"]), **values.get("init_args", {}))


COMPONENTS = (
    Component("encoder", ENCODERS, DEFAULT_ENCODER, OwnEncoderConfig),
    Component("scorer", SCORERS, DEFAULT_SCORER, OwnScorerConfig),
)


def chosen_components(settings: Mapping[Any, Any], options: Sequence[Option] = ()) -> tuple[Names, dict[Any, Any]]:
    """Return the ``type`` or the ``class_path`` of each component, and the file's settings that go with them.

    Where an option names another one than the file, the file's settings of its own are left out.
    """
    names, settings = [], dict(settings)
    for component in COMPONENTS:
        in_file = component.named(settings)
        names.append(chosen := component.named_by_options(options) or in_file or component.default)
        if not isinstance(settings.get("model"), Mapping):
            continue
        model = dict(settings["model"])
        own = model.get(component.name)
        if chosen != (in_file or component.default):
            model.pop(component.name, None)
        elif isinstance(own, Mapping) and not own.get("init_args", True):
            # Runs write init_args also for a class without settings.
            model[component.name] = {name: value for name, value in own.items() if name != "init_args"}
        settings["model"] = model
    return tuple(names), settings


def are_shipped(names: Names) -> bool:
    """Whether all components are of the package."""
    return all(name in component.kinds for component, name in zip(COMPONENTS, names, strict=True))


def _mapping(text: str) -> Any:
    try:
        return load_yaml(text)
    except yaml.YAMLError:
        return text  # the check of its key refuses it

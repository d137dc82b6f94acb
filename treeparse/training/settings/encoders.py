"""Which encoder the settings of a run name, and the settings that it has."""

from collections.abc import Mapping, Sequence
from typing import Any, get_origin, get_type_hints

import yaml
from jsonargparse import ArgumentParser

from treeparse.errors import TreeparseError, did_you_mean
from treeparse.model.config import DEFAULT_ENCODER, ENCODERS
from treeparse.nn.config import EncoderConfig
from treeparse.training.settings.arguments import load_yaml, option_values
from treeparse.user_code import import_code

KEY = "model.encoder"


def chosen_encoder(settings: Mapping[Any, Any], options: Sequence[str] = ()) -> tuple[str, dict[Any, Any]]:
    """The ``type`` or the ``class_path`` of the encoder, and the file's settings that go with it.

    Where an option names another encoder than the file, the file's settings of its encoder are left out: they are those
    of that one.
    """
    in_file, in_options = _named(settings), _named_by_options(options)
    chosen, model = in_options or in_file or DEFAULT_ENCODER, settings.get("model")
    if not isinstance(model, Mapping):
        return chosen, dict(settings)
    model = dict(model)
    if chosen != (in_file or DEFAULT_ENCODER):
        model.pop("encoder", None)
    elif isinstance(model.get("encoder"), Mapping) and not model["encoder"].get("init_args", True):
        # Of a class without settings, which a run writes all the same.
        model["encoder"] = {name: value for name, value in model["encoder"].items() if name != "init_args"}
    return chosen, {**settings, "model": model}


def _named(settings: Mapping[Any, Any]) -> str | None:
    """The encoder that a mapping of settings names; a path wins, as the settings beside it are ``init_args``."""
    encoder: Any = settings
    for name in KEY.split("."):
        encoder = encoder.get(name)
        if not isinstance(encoder, Mapping):
            return None
    name = encoder.get("class_path") or encoder.get("type")
    return None if name is None else str(name)


def _named_by_options(options: Sequence[str]) -> str | None:
    found = None
    for key, text in option_values(options):
        if key in ("model", KEY, f"{KEY}.type", f"{KEY}.class_path"):
            settings: Any = _mapping(text) if text.startswith("{") else text
            for name in reversed(key.split(".")):
                settings = {name: settings}
            found = _named(settings) or found
    return found


def _mapping(text: str) -> Any:
    try:
        return load_yaml(text)
    except yaml.YAMLError:
        return text  # which is refused where its key is checked


def add_encoder_arguments(parser: ArgumentParser, name: str) -> None:
    """Declare the settings of an encoder, by its ``type`` or its ``class_path``; raises where there is none such."""
    if name in ENCODERS:
        parser.add_class_arguments(ENCODERS[name], KEY)
    elif "." in name:
        import_code(name.rpartition(".")[0])
        from treeparse.model.encoders.own import imported_encoder

        parser.add_argument(f"--{KEY}.class_path", type=str, default=name, help="the class of an encoder of your own")
        encoder = imported_encoder(name)
        try:
            parser.add_class_arguments(encoder, f"{KEY}.init_args", skip={"features"}, instantiate=False)
        except ValueError as error:
            raise TreeparseError(f"The settings of {name} are none, for want of a type: {error}") from error
    else:
        problem = f"There is no encoder {name!r:.100}, but {', '.join(ENCODERS)}; one of your own goes by "
        raise TreeparseError(f"{problem}{KEY}.class_path, mymodule.MyEncoder{did_you_mean(name, ENCODERS) or '.'}")


def list_settings(name: str) -> list[str]:
    """The keys of an encoder's settings that hold several values."""
    if name not in ENCODERS:
        return []
    hints = get_type_hints(ENCODERS[name])
    return [f"{KEY}.{setting}" for setting, hint in hints.items() if get_origin(hint) is tuple]


def encoder_config(values: EncoderConfig | dict[str, Any]) -> EncoderConfig:
    """The encoder's settings from what the arguments of `add_encoder_arguments` gave."""
    if isinstance(values, EncoderConfig):
        return values
    from treeparse.model.encoders.own import OwnEncoderConfig, imported_encoder

    return OwnEncoderConfig.of(imported_encoder(values["class_path"]), **values.get("init_args", {}))

"""The encoder that the settings of a run name, and the arguments of its settings."""

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
    """Return the ``type`` or the ``class_path`` of the encoder, and the file's settings for it.

    If an option names another encoder than the file, the file's settings of its encoder are left out, because they
    belong to that encoder.
    """
    in_file, in_options = _encoder_name(settings), _name_in_options(options)
    chosen, model = in_options or in_file or DEFAULT_ENCODER, settings.get("model")
    if not isinstance(model, Mapping):
        return chosen, dict(settings)
    model = dict(model)
    if chosen != (in_file or DEFAULT_ENCODER):
        model.pop("encoder", None)
    elif isinstance(model.get("encoder"), Mapping) and not model["encoder"].get("init_args", True):
        # Runs write init_args also for a class without settings.
        model["encoder"] = {name: value for name, value in model["encoder"].items() if name != "init_args"}
    return chosen, {**settings, "model": model}


def _encoder_name(settings: Mapping[Any, Any]) -> str | None:
    """Return the encoder that settings name; a path wins, because its settings are ``init_args``."""
    encoder: Any = settings
    for name in KEY.split("."):
        encoder = encoder.get(name)
        if not isinstance(encoder, Mapping):
            return None
    name = encoder.get("class_path") or encoder.get("type")
    return None if name is None else str(name)


def _name_in_options(options: Sequence[str]) -> str | None:
    name = None
    for key, text in option_values(options):
        if key in ("model", KEY, f"{KEY}.type", f"{KEY}.class_path"):
            settings: Any = _parsed(text) if text.startswith("{") else text
            for part in reversed(key.split(".")):
                settings = {part: settings}
            name = _encoder_name(settings) or name
    return name


def _parsed(text: str) -> Any:
    try:
        return load_yaml(text)
    except yaml.YAMLError:
        return text  # the check of its key refuses it


def add_encoder_arguments(parser: ArgumentParser, name: str) -> None:
    """Add the arguments of an encoder, by its ``type`` or its ``class_path``; raise if there is no such encoder."""
    if name in ENCODERS:
        parser.add_class_arguments(ENCODERS[name], KEY)
    elif "." in name:
        import_code(name.rpartition(".")[0])
        from treeparse.model.encoders.own import imported_encoder

        parser.add_argument(f"--{KEY}.class_path", type=str, default=name, help="the class of a custom encoder")
        encoder = imported_encoder(name)
        try:
            parser.add_class_arguments(encoder, f"{KEY}.init_args", skip={"features"}, instantiate=False)
        except ValueError as error:
            raise TreeparseError(
                f"The arguments of {name} must have types, so that they can be settings: {error}"
            ) from error
    else:
        problem = f"Unknown encoder {name!r:.100}. Encoders: {', '.join(ENCODERS)}, or a custom class by "
        raise TreeparseError(f"{problem}{KEY}.class_path, mymodule.MyEncoder{did_you_mean(name, ENCODERS) or '.'}")


def list_settings(name: str) -> list[str]:
    """Return the keys of an encoder's settings that take a list."""
    if name not in ENCODERS:
        return []
    hints = get_type_hints(ENCODERS[name])
    return [f"{KEY}.{setting}" for setting, hint in hints.items() if get_origin(hint) is tuple]


def encoder_config(values: EncoderConfig | dict[str, Any]) -> EncoderConfig:
    """Return the encoder's settings from the values of the arguments of `add_encoder_arguments`."""
    if isinstance(values, EncoderConfig):
        return values
    from treeparse.model.encoders.own import OwnEncoderConfig, imported_encoder

    return OwnEncoderConfig.of(imported_encoder(values["class_path"]), **values.get("init_args", {}))

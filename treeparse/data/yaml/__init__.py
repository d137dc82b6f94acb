"""YAML that users write, read so that every mistake is named with its line."""

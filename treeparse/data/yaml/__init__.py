"""YAML that users write; errors name the line of every mistake."""

"""Checks of the CUDA sources where there is no device."""

"""Engines that a test needs and a machine may lack: Node.js, Chromium, Java."""

import os

import pytest


def require(present: bool, how_to_get_it: str) -> None:
    """Skips the test with one line saying how to get the engine; with CI=true its absence is a failure."""
    if present:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"missing engine: {how_to_get_it}")
    pytest.skip(how_to_get_it)

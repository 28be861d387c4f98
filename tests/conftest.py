"""What every test shares."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "threat(id): the attack of THREATS that this test shows refused")

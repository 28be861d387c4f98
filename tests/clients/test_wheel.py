"""The built wheel, away from the checkout: it carries its templates and files, and serves."""

import subprocess
import sys
from pathlib import Path

import httpx2

from tests.processes import Server, running

CHECKOUT = Path(__file__).parents[2]


def test_the_wheel_serves_outside_the_checkout(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    subprocess.run(
        (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)),
        cwd=CHECKOUT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    install = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(packages))
    subprocess.run((sys.executable, *install, str(wheel)), check=True, capture_output=True)

    # Its own files come first; only the dependencies are those of the test environment.
    server = Server(tmp_path / "state", {"PYTHONPATH": str(packages)}, directory=tmp_path)
    where = "import connector; print(connector.__file__)"
    found = subprocess.run(
        (sys.executable, "-c", where),
        cwd=tmp_path,
        env=server.env(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.startswith(str(packages))
    with running(server):
        home = httpx2.get(server.url + "/")
        assert home.status_code == 200
        assert httpx2.post(f"{server.url}/mcp").status_code == 401
        assert "Uma só memória" in httpx2.get(server.url + "/?lang=pt").text
        assert "隐私" in httpx2.get(server.url + "/privacy?lang=zh").text
        assert httpx2.get(server.url + "/favicon.ico").status_code == 200
        stylesheet = home.text.split('rel="stylesheet" href="')[1].split('"')[0]
        assert httpx2.get(server.url + stylesheet).headers["content-type"].startswith("text/css")

"""Real proxies for the tests: nginx and Caddy, with everything they write in one directory."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.engines import require

NGINX = """
worker_processes 1;
daemon off;
pid {directory}/nginx.pid;
error_log {directory}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {directory}/body;
  proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi;
  scgi_temp_path {directory}/scgi;
{http}
}}
"""


def _binary(name: str, package: str) -> str:
    binary = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    require(binary is not None, f"{name}: apt-get install {package}")
    return str(binary)


@contextmanager
def nginx(directory: Path, http: str) -> Iterator[None]:
    """nginx with this in its http block; it accepts connections from its start on, so nobody need wait."""
    binary = _binary("nginx", "nginx-light")
    configuration = directory / "nginx.conf"
    configuration.write_text(NGINX.format(directory=directory, http=http))
    command = [binary, "-c", str(configuration), "-e", str(directory / "error.log")]
    subprocess.run([*command, "-t", "-q"], check=True, timeout=60)
    with _ended(subprocess.Popen(command)):
        yield


@contextmanager
def caddy(directory: Path, caddyfile: str) -> Iterator[None]:
    """Caddy with this Caddyfile, its own files in the directory too."""
    binary = _binary("caddy", "caddy")
    path = directory / "Caddyfile"
    path.write_text(caddyfile)
    home = {"HOME": str(directory), "XDG_DATA_HOME": str(directory), "XDG_CONFIG_HOME": str(directory)}
    command = [binary, "run", "--config", str(path), "--adapter", "caddyfile"]
    with (directory / "caddy.log").open("wb") as log:
        process = subprocess.Popen(command, env={**os.environ, **home}, stdout=log, stderr=log)
    with _ended(process):
        yield


@contextmanager
def _ended(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)

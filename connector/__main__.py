"""`python -m connector`, the same as the `vademecum` command."""

from connector.cli import main

main()

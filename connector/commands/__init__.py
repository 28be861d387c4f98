"""The commands of `vademecum`, one module per family; `cli.py` puts them together."""

"""The memory tools, one module per family; each is a small function of a call and its arguments.

`tool.py` says what a tool is, `catalogue.py` which of them an app sees. HTTP, tokens and JSON-RPC are not
known here.
"""

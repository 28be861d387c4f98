"""The web application: guard, MCP server, tools, sign-in and owner pages, and the command line.

The only package that knows both `oauth` and `store`; `app.py` is where they meet.
"""

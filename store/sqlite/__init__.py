"""The embedded backend: one SQLite file for records, owners, memories and events.

WAL, `synchronous=FULL`: what was acknowledged is on disk. Several processes may share the file.
"""

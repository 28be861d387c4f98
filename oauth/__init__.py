"""The authorization server: clients, authorization requests, grants, tokens and their metadata.

Built on Authlib, one RFC or concern per module. It states its storage need as `records.Records` and knows
neither the store that fulfils it, nor the pages that ask the owner, nor the tools that the tokens open.
"""

"""Memories: their rules, the engine that saves, searches and fetches them, and the backends that keep them.

It knows owners only by their random ids, and neither tokens nor pages. The backends also fulfil the
`Records` protocol of `oauth` structurally, without importing it.
"""

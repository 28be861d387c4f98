"""Text to vectors: the protocol the engine asks for, and the local model that needs neither key nor network.

An embedder knows nothing of owners, memories or search; it turns texts into unit vectors and has a name that
is stored beside each of them, because vectors of two models cannot be compared.
"""

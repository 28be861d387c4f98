"""Every benchmark, one after the other."""

from bench import embedder, server

embedder.main()
server.main()

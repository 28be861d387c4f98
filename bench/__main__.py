"""Every benchmark, one after the other."""

from bench import embedder, server, tenants

embedder.main()
server.main()
tenants.main(100_000)

"""Who the owner is: one protocol for identity providers, and the passphrase that needs nobody else.

It proves a person to be an identity; whose memories that identity opens is the store's `Owners` to say.
Cookies, pages and the OAuth that follows belong to `connector.pages` and `oauth`.
"""

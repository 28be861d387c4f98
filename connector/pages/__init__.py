"""The pages that people see: sign-in, consent, set-up, a memory, and where to connect.

They own browser sessions, CSRF and pending authorization requests. What an authorization request means is
`oauth` to say; who somebody is, `connector.identity`; what is remembered, `store`. The words are in
`templates/`.
"""

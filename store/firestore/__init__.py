"""The engine for scale: records, owners, memories and events in Firestore, for any number of processes.

Nothing is a hot transaction: what is decided is read, and committed at once under the condition that it is
still as it was read; otherwise it is decided again.
"""

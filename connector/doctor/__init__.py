"""What is wrong with an installation, and how to mend it: from inside, and from where the hosts look.

It changes nothing but one registration, and decides nothing: the server's own checks are elsewhere.
"""

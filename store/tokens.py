"""How many tokens of a language model's context a text takes, estimated alike for every model and script.

A quarter of a token per byte of UTF-8: four Latin letters to a token, two of other alphabets, one character
of Chinese, Japanese, Korean, Thai or Devanagari, half an emoji. Ordinary prose comes out a little high with
today's tokenizers, so that a budget is kept rather than overrun.
"""

BYTES_PER_TOKEN = 4


def estimate(text: str) -> int:
    """Tokens, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)

"""Names in a text: what is quoted, linked, or written with a capital where grammar does not ask for one.

No model and no dictionary: what cannot be told from its writing is left out rather than guessed. Scripts
without capitals give their names by quotation marks, links, tags and topics.
"""

from collections import Counter
from collections.abc import Iterator
from unicodedata import normalize

import regex

from store.lexical import STOP_WORDS

MAX_TEXT_CHARACTERS = 10_000
MAX_NAME_CHARACTERS = 100
MAX_NAMES = 48
MAX_LINKS = 16
MAX_QUOTED_WORDS = 6

_LINK = regex.compile(r"https?://[^\s<>\"'`\\\p{Ps}\p{Pe}\p{Pi}\p{Pf}]{1,500}", regex.IGNORECASE)
_LINK_END = ".,;:!?*_…。、，"
_QUOTED = regex.compile(
    r'"([^"\n]{2,60})"|“([^“”\n]{2,60})”|„([^„“”\n]{2,60})[“”]|«\s?([^«»\n]{2,60}?)\s?»'
    r"|「([^「」\n]{1,60})」|『([^『』\n]{1,60})』|《([^《》\n]{1,60})》|\[\[([^\[\]|\n]{1,60})(?:\|[^\]\n]*)?\]\]"
)
_ENDS_SENTENCE = regex.compile(r"[.!?。！？…]$")
_TOKEN = regex.compile(
    r"(?P<end>[.!?…。！？:;]+(?=\s|$)|\n+|^[\s>#*+\-\d.)]+|[•–—|])"
    r"|(?P<word>[\p{L}\p{N}][\p{L}\p{M}\p{N}'’&+#-]*)|(?P<gap>[ \t]+)|(?P<other>.)",
    regex.MULTILINE,
)
_CAPITAL = regex.compile(r"[\p{Lu}\p{Lt}]")
_INSIDE = regex.compile(r"(?<=.)[\p{Lu}\p{Lt}\p{N}]")
_POSSESSIVE = regex.compile(r"['’][sS]?$")
_SPACE = regex.compile(r"\s+")
_PARTICLES = frozenset(
    {"de", "del", "della", "der", "den", "di", "du", "da", "dos", "van", "von", "zu", "of", "la"}
)
_GERMAN_DETERMINERS = """
    der die das den dem des ein eine einen einem einer eines kein keine keinen im am zum zur vom beim ins
    mein meine meinen meinem meiner dein deine sein seine ihr ihre unser unsere jeder jede jedes
"""
_DETERMINERS = frozenset(_GERMAN_DETERMINERS.split())
"""After one of these German writes a noun with a capital, which is no name."""
_ORDINARY_WORDS = """
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july
    august september october november december ok todo note yes no please thanks today tomorrow yesterday
    also never always add ask avoid book build buy call check close contact create deploy email find finish
    fix follow get give go install keep let make meet move open order pay pick ping plan prefer read
    remember remind review run see send set start stop take tell text try update use visit write
"""
_ORDINARY = frozenset(_ORDINARY_WORDS.split())
"""Words that begin a note with a capital, or always have one, and name nobody."""
SHOUTED_WORDS = 3


def folded(text: str) -> str:
    """A text with compatibility forms, case and white space made one."""
    return _SPACE.sub(" ", normalize("NFKC", text).casefold()).strip()


def key(name: str) -> str:
    """By which two spellings are one name."""
    return folded(name)[:MAX_NAME_CHARACTERS]


def links(text: str) -> Counter[str]:
    """The addresses in a text, and how often each is there."""
    found = (match.group().rstrip(_LINK_END) for match in _LINK.finditer(text[:MAX_TEXT_CHARACTERS]))
    return _commonest(Counter(link for link in found if len(link) > len("https://")), MAX_LINKS)


def names(text: str) -> Counter[str]:
    """The names in a text as it first spells them, and how often each is there."""
    plain = _LINK.sub(" ", text[:MAX_TEXT_CHARACTERS])
    spelt: dict[str, str] = {}
    counts: Counter[str] = Counter()
    quoted = [*_quoted(plain)]
    for name in quoted:
        plain = plain.replace(name, " , ")
    for name in (*quoted, *_capitalised(plain)):
        of = key(name)
        if of and len(name) <= MAX_NAME_CHARACTERS:
            counts[spelt.setdefault(of, name)] += 1
    return _commonest(counts, MAX_NAMES)


def _commonest(counts: Counter[str], limit: int) -> Counter[str]:
    return Counter(dict(counts.most_common(limit)))


def _quoted(text: str) -> Iterator[str]:
    for match in _QUOTED.finditer(text):
        name = next(group for group in match.groups() if group is not None).strip()
        is_name = any(character.isalpha() for character in name) and not _ENDS_SENTENCE.search(name)
        if is_name and len(name.split()) <= MAX_QUOTED_WORDS:
            yield name


def _capitalised(text: str) -> Iterator[str]:
    runs = [*_runs(text)]
    elsewhere = {word for words, at_start in runs for word in (words[1:] if at_start else words)}
    for words, at_start in runs:
        if at_start and (len(words[0]) < 2 or _is_ordinary(words[0])):
            words = words[1:]
        elif at_start and len(words) == 1 and not (_INSIDE.search(words[0]) or words[0] in elsewhere):
            # A capital is all that a sentence's first word has to say for itself.
            continue
        while words and words[-1].casefold() in _PARTICLES:
            words = words[:-1]
        if words and not _is_noise(words):
            yield " ".join(words)


def _is_noise(words: list[str]) -> bool:
    if len(words) == 1:
        return len(words[0]) < 2 or _is_ordinary(words[0])
    return len(words) >= SHOUTED_WORDS and " ".join(words).isupper()


def _is_ordinary(word: str) -> bool:
    folded = regex.split(r"['’]", word.casefold())[0]
    return folded in _ORDINARY or folded in STOP_WORDS


def _runs(text: str) -> Iterator[tuple[list[str], bool]]:
    """Runs of capitalised words, and whether each begins a sentence."""
    run: list[str] = []
    at_start, run_at_start, before = True, False, ""
    for match in _TOKEN.finditer(text):
        token, kind = match.group(), match.lastgroup
        if kind == "gap":
            continue
        is_first = not run or (len(run) == 1 and run_at_start)
        word = _POSSESSIVE.sub("", token) if kind == "word" else ""
        if _CAPITAL.match(word) and not (is_first and _is_noun(word, before)):
            run_at_start = run_at_start if run else at_start
            run.append(word)
            is_over = word != token
        else:
            is_over = not (run and word in _PARTICLES)
            run += [] if is_over else [word]
        if is_over and run:
            yield run, run_at_start
            run = []
        at_start = kind == "end" or (at_start and kind == "other")
        before = token.casefold() if kind == "word" else ""
    if run:
        yield run, run_at_start


def _is_noun(word: str, before: str) -> bool:
    return before in _DETERMINERS and not _INSIDE.search(word)

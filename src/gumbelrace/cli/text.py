"""Words of the command line, and text for terminals: what files say of themselves never controls one."""

from collections.abc import Sequence
from itertools import zip_longest

HERE = "here"  # the address of the Ray that runs on this machine, or else is started


def printable(text: str) -> str:
    r"""Write characters that would control a terminal as escapes; line ends stay.

    Examples
    --------
    >>> print(printable("\x1b[31mred"))
    \x1b[31mred
    """
    return "".join(
        one if one.isprintable() or one == "\n" else one.encode("unicode_escape").decode() for one in text
    )


def one_line(text: str) -> str:
    """Put a text into one line that is `printable`."""
    return printable(" ".join(text.split()))


def with_address(words: Sequence[str]) -> list[str]:
    """Put an address after --ray where there is none: typer knows no option that may have a value.

    Examples
    --------
    >>> with_address(["coreference", "--ray", "--jobs", "2"])
    ['coreference', '--ray', 'here', '--jobs', '2']
    """
    found: list[str] = []
    for word, after in zip_longest(words, words[1:], fillvalue=""):
        found += [word, HERE] if word == "--ray" and not is_address(after) else [word]
    return found


def is_address(word: str) -> bool:
    """Whether a word may be the address of a Ray."""
    return word in (HERE, "auto", "local") or ":" in word

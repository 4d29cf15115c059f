"""Text for terminals: what files say about themselves never controls one."""


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

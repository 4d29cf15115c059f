"""Results as text for a terminal."""

from collections.abc import Iterable
from textwrap import fill

WIDTH, INDENT = 80, 13
COMPILING = "racing (the first run compiles)"
HINT = "; --reward-range LOW HIGH would prove it"


def paragraphs(parts: Iterable[tuple[str, str]]) -> str:
    """Put texts below each other, each with a word in front that says what it is about."""
    return "\n".join(
        fill(
            text,
            WIDTH,
            initial_indent=f"{about:<{INDENT}}",
            subsequent_indent=" " * INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for about, text in parts
    )


def percent(share: float) -> str:
    """Give a share in percent, with three digits."""
    return f"{100 * share:.3g}%"


def ground(proved: bool, assumption: str | None) -> str:
    """Say what a bound rests on."""
    return "proved" if proved else f"assuming that {assumption}"

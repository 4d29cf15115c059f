"""The paper's statements beside what was found, for pages and in a few words."""

from collections.abc import Sequence
from typing import NamedTuple

from gumbelrace.report.page import Block, Column, Section, Table, Text, Verdict

COLUMNS = [Column(title, is_number=False) for title in ("The paper says", "We found", "Verdict", "Why")]
VERDICTS = {
    True: Verdict("held", "good"),
    False: Verdict("differs", "bad"),
    None: Verdict("cannot be said", "open"),
}


class Claim(NamedTuple):
    """A statement of the paper, what we found, and whether it held (None: it cannot be said)."""

    paper: str
    ours: str
    held: bool | None
    why: str = ""


def unsure(errors: int, count: int, high: float) -> str:
    """Say that errors contradict nothing, and are too few to show more."""
    return f"not contradicted ({errors:,} of {count:,}; up to {high:.2g})"


def claims_section(claims: Sequence[Claim], *texts: str) -> Section:
    """Give the section of a page that holds the paper's statements against what was found."""
    blocks: list[Block] = [*map(Text, texts), claims_table(claims)]
    return Section("Ours beside the paper's", blocks)


def claims_table(claims: Sequence[Claim]) -> Table:
    rows = [(claim.paper, claim.ours, VERDICTS[claim.held], claim.why) for claim in claims]
    return Table(COLUMNS, rows, stacks=True)


def claims_sentence(claims: Sequence[Claim]) -> str:
    held = sum(claim.held is True for claim in claims)
    differs = sum(claim.held is False for claim in claims)
    text = f"Of {len(claims)} statements, {held} held and {differs} did not"
    rest = len(claims) - held - differs
    return f"{text}; of {rest} it cannot be said." if rest else f"{text}."


def claims_summary(claims: Sequence[Claim]) -> list[tuple[str, str]]:
    """Count those that held, and name those that did not: what each line is about, and its words."""
    held, rest = (sum(claim.held is verdict for claim in claims) for verdict in (True, None))
    differ = [("differs", claim.paper) for claim in claims if claim.held is False]
    open_ones = f"; of {rest} it cannot be said" if rest else ""
    return [("claims", f"{held} of {len(claims)} held{open_ones}"), *differ]

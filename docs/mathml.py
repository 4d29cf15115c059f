"""Formulas as MathML, which browsers display by themselves: no script, nothing from the network.

A Sphinx extension of one renderer: what MyST finds between dollars is converted by latex2mathml when the
site is built.
"""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

# Browsers leave out mathvariant; letters and digits of Unicode are script or bold by themselves.
BOLD_ONE = ('<mn mathvariant="bold">1</mn>', "<mn>𝟏</mn>")
SCRIPT = re.compile(r'<mi mathvariant="script">([A-Z])</mi>')
LETTERS = dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "𝒜ℬ𝒞𝒟ℰℱ𝒢ℋℐ𝒥𝒦ℒℳ𝒩𝒪𝒫𝒬ℛ𝒮𝒯𝒰𝒱𝒲𝒳𝒴𝒵", strict=True))
# A function and an argument without brackets have a space between them.
FUNCTION = re.compile(r"(<mi>(?:arg|cos|exp|log|sin|tan|tanh)</mi>)(?=<m(?!o stretchy))")
UNKNOWN = re.compile(r"<mi>(\\\w+)</mi>")


def mathml(formula: str, display: str) -> str:
    """Convert a formula in LaTeX; a command that the converter does not know ends the build."""
    found = convert(formula, display=display).replace("<mi>\\arg</mi>", "<mi>arg</mi>").replace(*BOLD_ONE)
    if unknown := UNKNOWN.search(found):
        raise ValueError(
            f"{unknown[1]} in {formula!r} cannot be converted to MathML; write it in another way"
        )
    found = FUNCTION.sub(r'\1<mspace width="0.17em" />', found)
    return SCRIPT.sub(lambda letter: f"<mi>{LETTERS[letter[1]]}</mi>", found)


def inline(self: Any, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def block(self: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own, in a box that scrolls if the screen is narrower."""
    self.body.append(f'<div class="formula">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the renderer under the name mathml."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""How large the house is: files and lines, public names, and what a reader of four flows comes through.

    python benchmarks/house.py [CHECKOUT ...]

The source is read and not run. A flow is all modules of the package that its first ones import, and what
these import, inside functions too; packages of one line, imports for type checkers only and what is loaded
by its name are left out. Other checkouts are shown beside this one.
"""

import argparse
import ast
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from shared import show

PACKAGE, LOADER = "gumbelrace", "gumbelrace.lazy"
HERE = Path(__file__).resolve().parents[1]
# What a flow begins with: names of the package's root, or modules.
FLOWS = {
    "sample(table)": ("sample", "table"),
    "Metropolis with a control variate": ("Metropolis", "likelihood", "parameter_taylor"),
    "a cluster sweep": ("ClusterGibbs", "pairs"),
    "gumbelrace arch": (f"{PACKAGE}.cli.arch",),
}


class House:
    """The source of the package in a checkout."""

    def __init__(self, checkout: Path) -> None:
        root = checkout / "src" / PACKAGE
        self.texts = {module_name(path, root): path.read_text("utf-8") for path in root.rglob("*.py")}
        if not self.texts:
            raise SystemExit(f"{checkout} has no folder src/{PACKAGE}; give a checkout of the repository")

    def lines(self, module: str) -> int:
        return len(self.texts[module].splitlines())

    @cached_property
    def public(self) -> dict[str, str]:
        """Give the names at the root, and the module of each; the one that loads them is no part of it."""
        imports = [n for n in ast.walk(ast.parse(self.texts[PACKAGE])) if isinstance(n, ast.ImportFrom)]
        inner = [n for n in imports if (n.module or "").startswith(f"{PACKAGE}.") and n.module != LOADER]
        return {alias.name: node.module or "" for node in inner for alias in node.names}

    def closure(self, beginning: Sequence[str]) -> set[str]:
        """Give the modules of a flow."""
        waiting, found = [self.public.get(name, name) for name in beginning], set[str]()
        while waiting:
            module = waiting.pop()
            if module in self.texts and module not in found | {PACKAGE}:
                found.add(module)
                waiting += imported(ast.parse(self.texts[module]))
        return {module for module in found if self.lines(module) > 1}

    def facts(self) -> dict[str, str]:
        """Give the lines of the table: what is counted, and how much there is of it."""
        flows = {flow: self.size(self.closure(beginning)) for flow, beginning in FLOWS.items()}
        return {
            "all of src": self.size(self.texts),
            "public names at the root": str(len(self.public)),
            **flows,
        }

    def size(self, modules: set[str] | dict[str, str]) -> str:
        if not modules:
            return "not there"
        return f"{len(modules)} files, {sum(map(self.lines, modules)):,} lines"


def module_name(path: Path, root: Path) -> str:
    return ".".join([PACKAGE, *path.relative_to(root).with_suffix("").parts]).removesuffix(".__init__")


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imported(node: ast.AST) -> Iterator[str]:
    """Yield what may be modules: of `from a import b` both a and a.b."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import():
                yield from (alias.name for alias in child.names)
            case ast.ImportFrom(module=str(module)):
                yield from (module, *(f"{module}.{alias.name}" for alias in child.names))
            case _ if not is_for_types(child):
                yield from imported(child)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkouts", nargs="*", type=Path, metavar="CHECKOUT")
    checkouts = [HERE, *(path.resolve() for path in parser.parse_args().checkouts)]
    columns = [House(checkout).facts() for checkout in checkouts]
    rows = [[what, *(column[what] for column in columns)] for what in columns[0]]
    show("The house", " | ".join(["", *(checkout.name for checkout in checkouts)]), rows)


if __name__ == "__main__":
    main()

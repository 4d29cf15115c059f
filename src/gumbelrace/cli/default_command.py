"""A group of commands of which one needs no name."""

from typing import Any

from typer.core import TyperGroup

DEFAULT = "resolve"


class WithDefault(TyperGroup):
    """Takes words that begin with no command's name for those of the command `DEFAULT`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the name in front where it is missing."""
        known = args and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if known else [DEFAULT, *args])

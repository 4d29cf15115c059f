"""The colours of a page by name, for a light and a dark screen.

The four of the methods stay apart for readers who see no red, no green or no blue (their distance in
OKLab is at least 0.09), and every method has a line style of its own as well. Steps are shades of one
colour, for things that have an order.
"""

LIGHT = {
    "paper": "#fffefb",
    "panel": "#f6f4ee",
    "ink": "#1d1c1a",
    "quiet": "#5d5951",
    "rule": "#d9d5ca",
    "grid": "#e7e3d9",
    "accent": "#1f5f8b",
    "good": "#17664a",
    "bad": "#9c2418",
    "series-1": "#b97b17",
    "series-2": "#3886d6",
    "series-3": "#8a1d10",
    "series-4": "#197653",
    "step-1": "#5192c8",
    "step-2": "#3a7cb0",
    "step-3": "#216698",
    "step-4": "#005081",
    "step-5": "#023c62",
    "step-6": "#022944",
}
DARK = {
    "paper": "#151719",
    "panel": "#1e2124",
    "ink": "#e9e6df",
    "quiet": "#a8a49b",
    "rule": "#3b3f43",
    "grid": "#2c3033",
    "accent": "#85bfe8",
    "good": "#6fd6ae",
    "bad": "#f29a86",
    "series-1": "#efc627",
    "series-2": "#4d90d6",
    "series-3": "#d57d61",
    "series-4": "#7bf0d3",
    "step-1": "#2b6ea1",
    "step-2": "#4587bb",
    "step-3": "#5ea0d6",
    "step-4": "#78baf2",
    "step-5": "#a1d3ff",
    "step-6": "#d5ebfe",
}

# Figures are drawn in these, which stand for the names: no two look alike and nothing else has them.
STAND_IN = {name: f"#ab{number:02x}cd" for number, name in enumerate(LIGHT)}
NAME_OF = {stand_in: name for name, stand_in in STAND_IN.items()}

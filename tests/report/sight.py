"""How colours look: light and contrast, from #rrggbb."""

import numpy as np


def linear(colour):
    """Give the light of red, green and blue, from 0 to 1."""
    parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """Give the contrast of WCAG 2."""
    weights = [0.2126, 0.7152, 0.0722]
    low, high = sorted((float(linear(one) @ weights), float(linear(other) @ weights)))
    return (high + 0.05) / (low + 0.05)

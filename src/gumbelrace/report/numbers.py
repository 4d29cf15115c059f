"""Numbers as a reader wants them.

Examples
--------
>>> [percent(share) for share in (1.0, 0.4567, 0.0312, 0.00065, 0.0)]
['100%', '46%', '3.1%', '0.065%', '0%']
>>> [probability(value) for value in (0.0, 0.00021, 0.0499, 0.983)]
['0', '0.00021', '0.05', '0.98']
>>> interval((0.0, 0.0037))
'0 to 0.0037'
>>> [microseconds(seconds) for seconds in (1.8e-6, 0.000123, 0.0456)]
['1.8', '123', '45,600']
>>> [times(ratio) for ratio in (0.0123, 1.0, 5.43, 123.4)]
['0.012×', '1.0×', '5.4×', '120×']
>>> [power_of_ten(value) for value in (1e-4, 1.0, 1e5)]
['10⁻⁴', '1', '10⁵']
>>> [rate(value) for value in (0.8414, 11.27, 2950.4)]
['0.841', '11.3', '2,950']
>>> count(12345.0)
'12,345'
"""

import math

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def percent(share: float) -> str:
    return f"{probability(100.0 * share)}%"


def probability(value: float) -> str:
    """Give a number with two digits that count."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:.10f}".rstrip("0").rstrip(".") if abs(rounded) < 1e6 else f"{rounded:,.0f}"


def interval(ends: tuple[float, float]) -> str:
    return f"{probability(ends[0])} to {probability(ends[1])}"


def microseconds(seconds: float) -> str:
    value = 1e6 * seconds
    return f"{value:.2g}" if value < 10.0 else rate(value)


def times(ratio: float) -> str:
    return f"{probability(ratio)}×" if not 1.0 <= ratio < 10.0 else f"{ratio:.1f}×"


def power_of_ten(value: float) -> str:
    exponent = round(math.log10(value))
    return f"10{str(exponent).translate(SUPERSCRIPTS)}" if exponent else "1"


def rate(value: float) -> str:
    """Give a number with three digits that count."""
    return f"{value:.3g}" if value < 100.0 else f"{float(f'{value:.3g}'):,.0f}"


def count(number: float) -> str:
    return f"{number:,.0f}"

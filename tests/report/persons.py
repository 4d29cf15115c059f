"""Mentions whose persons are known, with texts that would do harm, for pages to show."""

import numpy as np

from gumbelrace.applications.certainty import BY_ITSELF, NOWHERE, Sure
from gumbelrace.report.persons import Register

NASTY = (
    "</script><script>document.title='hacked'</script>"
    "<img src=x onerror=\"alert('`1`')\">&\x1b[31m\u202e\u2028"
)


def register(persons=30, nasty=NASTY, sure=True):
    """Make up persons of 1 to `persons` mentions; the last mention of each is doubtful."""
    clusters = np.repeat(np.arange(persons), np.arange(1, persons + 1))
    n = len(clusters)
    last = np.r_[clusters[1:] != clusters[:-1], True]
    probability = np.where(last, 0.25, 1.0)
    runner_up = np.where(last, np.where(clusters > 0, clusters - 1, BY_ITSELF), NOWHERE)
    texts = {
        "author": [f"Zoë {nasty} Person{cluster:04d}" for cluster in clusters],
        "coauthors": [f"Al {nasty};Bo Wu" for _ in range(n)],
        "title": [f"{nasty} a title {row}" for row in range(n)],
        "venue": [f"Venue {cluster}" for cluster in clusters],
        "year": [str(1990 + row % 20) for row in range(n)],
    }
    found = Sure(
        probability.tolist(),
        runner_up.tolist(),
        np.where(last, 0.75, 0.0).tolist(),
        np.where(last, 0.1, 0.0).tolist(),
    )
    ids, blocks = [f"m{row}{nasty}" for row in range(n)], ["p z"] * n
    return Register(ids, texts, blocks, clusters, found if sure else None, "clusters.csv")

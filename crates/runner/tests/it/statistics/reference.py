"""Generates reference.json: values of SciPy and statsmodels that `statistics` must equal to 1e-9.

Made with Python 3.11, NumPy 2.4.6, SciPy 1.17.1, statsmodels 0.15.0; the file names the versions that it was made with.

    pip install numpy==2.4.6 scipy==1.17.1 statsmodels==0.15.0
    python reference.py > reference.json
"""

import json
import math
from fractions import Fraction

import numpy as np
import scipy
import statsmodels
from scipy import special, stats
from statsmodels.stats.multitest import multipletests

CASES = 40
random = np.random.default_rng(20261117)


def sample(size):
    """Scores, success as 0 and 100, costs, latencies: the shapes that runs of agents have."""
    shape = random.integers(4)
    if shape == 0:
        values = np.clip(random.normal(70, 20, size), 0, 100)
    elif shape == 1:
        values = 100.0 * random.integers(0, 2, size)
    elif shape == 2:
        values = random.lognormal(-4, 1, size)
    else:
        values = random.lognormal(1, 0.5, size)
    values = [round(float(value), 4) for value in values]
    if min(values) == max(values):
        values[0] += 1.5
    return values


def summaries():
    for _ in range(CASES):
        values = sample(random.integers(2, 40))
        mean, error = np.mean(values), stats.sem(values)
        low, high = stats.t.interval(0.95, len(values) - 1, loc=mean, scale=error)
        yield {
            "values": values,
            "mean": mean,
            "deviation": np.std(values, ddof=1),
            "median": np.median(values),
            "variation": stats.variation(values, ddof=1),
            "low": low,
            "high": high,
        }


def rates():
    counts = [(0, 1), (1, 1), (0, 30), (30, 30), (29, 30), (500, 1000), (3, 20000), (99999, 100000), (50000, 100000), (700000, 1000000)]
    for _ in range(CASES):
        runs = int(random.integers(1, 200))
        counts.append((int(random.integers(0, runs + 1)), runs))
    for successes, runs in counts:
        interval = stats.binomtest(successes, runs).proportion_ci(0.95, method="exact")
        yield {"successes": successes, "runs": runs, "low": interval.low, "high": interval.high}


def passes():
    for _ in range(CASES):
        runs = int(random.integers(1, 120))
        successes, k = int(random.integers(0, runs + 1)), int(random.integers(1, runs + 1))
        every = math.comb(runs, k)
        yield {
            "successes": successes,
            "runs": runs,
            "k": k,
            "any": float(1 - Fraction(math.comb(runs - successes, k), every)),
            "all": float(Fraction(math.comb(successes, k), every)),
        }


def hedges(after, before):
    """SciPy has no Hedges' g: the standardised difference with the exact correction, by SciPy's gamma function."""
    freedom = len(after) + len(before) - 2
    squares = np.var(after, ddof=1) * (len(after) - 1) + np.var(before, ddof=1) * (len(before) - 1)
    correction = math.exp(special.gammaln(freedom / 2) - special.gammaln((freedom - 1) / 2)) / math.sqrt(freedom / 2)
    return correction * (np.mean(after) - np.mean(before)) / math.sqrt(squares / freedom)


def welches():
    for index in range(CASES):
        after, before = sample(random.integers(2, 31)), sample(random.integers(2, 31))
        if index % 2 == 0:
            # Samples of one kind, so that p is not tiny throughout.
            before = [round(value * 1.1 + 0.01, 4) for value in random.choice(after, len(before))]
            if min(before) == max(before):
                before[0] += 1.5
        both = stats.ttest_ind(after, before, equal_var=False)
        interval = both.confidence_interval(0.95)
        yield {
            "after": after,
            "before": before,
            "t": both.statistic,
            "freedom": both.df,
            "p": both.pvalue,
            "less": stats.ttest_ind(after, before, equal_var=False, alternative="less").pvalue,
            "greater": stats.ttest_ind(after, before, equal_var=False, alternative="greater").pvalue,
            "g": hedges(after, before),
            "low": interval.low,
            "high": interval.high,
        }


def fishers():
    tables = [(0, 0, 0, 0), (5, 0, 0, 5), (0, 5, 5, 0), (3, 7, 7, 3), (27, 3, 9, 21), (0, 9, 4, 5), (1200, 800, 1100, 900)]
    for index in range(CASES):
        limit = 200 if index % 4 == 0 else 20
        tables.append(tuple(int(count) for count in random.integers(0, limit, 4)))
    for table in tables:
        p = stats.fisher_exact([table[:2], table[2:]]).pvalue
        yield {"table": table, "p": p}


def permutations():
    for index in range(CASES):
        size = int(random.integers(2, 14))
        # Quarters are exact in binary, so that equal sums are equal in every order of addition.
        scale = 4.0 if index % 2 == 0 else 1e4
        differences = np.round(random.normal(-1, 3, size) * scale) / scale
        if min(differences) == max(differences):
            differences[0] += 2.0
        result = stats.permutation_test(
            (differences,), lambda x, axis: np.mean(x, axis=axis), permutation_type="samples", n_resamples=np.inf, vectorized=True
        )
        interval = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
        yield {"differences": differences.tolist(), "p": result.pvalue, "low": interval.low, "high": interval.high}


def holms():
    for index in range(CASES):
        values = random.random(random.integers(1, 60)) ** 4
        if index % 4 == 0:
            values = np.round(values, 1)
        values = [round(float(value), 8) for value in values]
        yield {"values": values, "adjusted": multipletests(values, method="holm")[1].tolist()}


def quantiles():
    """Quantiles and tails of Student's distribution, as intervals and tests use them, also for large samples."""
    for _ in range(CASES):
        freedom = round(float(10 ** random.uniform(0, 7)), 3)
        t = round(float(random.normal(0, 4)), 4)
        yield {
            "freedom": freedom,
            "t": t,
            "p": 2 * stats.t.sf(abs(t), freedom),
            "upper": stats.t.sf(t, freedom),
            "quantile": stats.t.ppf(0.975, freedom),
        }


def plain(value):
    if isinstance(value, dict):
        return {key: plain(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(member) for member in value]
    if isinstance(value, (np.integer, int)):
        return int(value)
    return float(value)


def main():
    kinds = [summaries, rates, passes, welches, fishers, permutations, holms, quantiles]
    versions = {"numpy": np.__version__, "scipy": scipy.__version__, "statsmodels": statsmodels.__version__}
    print('{\n"versions": ' + json.dumps(versions), end="")
    for kind in kinds:
        cases = ",\n".join(json.dumps(plain(case), allow_nan=False) for case in kind())
        print(f',\n"{kind.__name__}": [\n{cases}\n]', end="")
    print("\n}")


main()

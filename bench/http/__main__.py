"""`python -m bench.http`."""

from bench.http import report, run

print(report(run()))

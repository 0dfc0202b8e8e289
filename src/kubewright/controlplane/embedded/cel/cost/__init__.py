"""What a rule may cost at worst, estimated from the limits in its schema before it ever runs.

The server refuses definitions whose rules could become too expensive; the arithmetic is that of cel-go and Kubernetes,
so that the same definitions are refused with the same factors.
"""

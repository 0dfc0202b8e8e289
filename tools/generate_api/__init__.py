"""Writes the Python types of Kubernetes' own kinds: `python -m tools.generate_api`.

`documents` asks a server what it serves, `kinds` reads those answers, `source` turns them into modules.
"""

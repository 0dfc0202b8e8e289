"""The functions that rules may call, one module per subject."""

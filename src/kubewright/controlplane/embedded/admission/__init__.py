"""Admission: what may change or refuse a write after the rules of its kind."""

"""Replaces functions of a program by wrappers, and puts them back; knows nothing of devices."""

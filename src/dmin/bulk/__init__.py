"""Classify files of any size, on one machine or many."""

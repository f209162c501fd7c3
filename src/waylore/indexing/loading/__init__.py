"""Load many files with many processes, on one machine or on a Ray cluster."""

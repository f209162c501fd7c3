"""Hostile requests and files, and the processor time that each costs a service."""

"""Readers that turn messages and exports of conversations into messages with times and speakers."""

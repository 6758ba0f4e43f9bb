"""Sentences of events, by what they tell of."""

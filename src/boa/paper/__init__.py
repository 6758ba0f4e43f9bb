"""The paper's evaluation, redone: one module per figure and table, over runs that they share."""

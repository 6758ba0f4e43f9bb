"""The live driver of the scheduler: a loop on the wall's clock, with store, engine and cloud."""

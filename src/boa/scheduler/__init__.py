"""The live brain: observe, decide, write down, act."""

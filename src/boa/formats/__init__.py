"""Files that people write, and what jobs report: each declared once (`kinds` lists them)."""

"""Parts of `bench/campaign.py`: worlds that fail, what fails in them, and who watches."""

"""Notices on their way out: webhooks, Slack and e-mail."""

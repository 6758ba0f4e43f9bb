"""From records to the documents that the API answers with."""

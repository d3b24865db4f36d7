"""The output of jobs: tables as text, and the page of a report with its plots."""

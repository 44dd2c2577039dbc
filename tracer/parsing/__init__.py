"""Parse the text of programs: `tokens`, `params` of equations, `terms` of `ein`; `programs` also checks types."""

"""Reading the text of programs: `tokens`, `params` of equations, `terms` of `ein`; `programs` checks what it reads."""

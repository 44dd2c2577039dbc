"""Settings: what a user may change for the process, a thread or a block, and what says whether it was.

Begin with `config`, the table of the settings; `scoped_settings` has them as context managers, `scopes` sets a context
variable for a call, and `settings_by_text` reads them from the environment and from flags.
"""

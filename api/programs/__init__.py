"""Programs that are kept: gradients as programs, their text, and files of them.

Begin with `gradient_programs`; `program_parsing` reads the text of programs for users, and `loading` is `tl.load`.
"""

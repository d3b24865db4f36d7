"""The command line: the words of each command, their help, and the pages made of them.

`cli` reads a command line and runs its command. `table` has a record of each command, `parsing` the parser,
`meant` the words of other programs, `arguments` the types of values, and `names` the option for the names of
tokens. From the parsers derive `completion` (scripts for shells), `manual` (man pages) and `command_page`
(docs/commands.md).
"""

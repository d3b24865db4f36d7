"""Wire formats, pure: bytes in, values out.

`frame` and `pattern` are those of TMQ, `notation` writes a pattern as one word. `envelope` goes before a
frame on trunks, `batch` travels inside the program, `runs` finds equal messages in one, and `sp` cuts a
peer's stream into batches.
"""

"""Wire formats, pure: bytes in, values out.

`frame` and `pattern` are TMQ's, `envelope` goes in front of a frame on trunks, `batch` is what travels inside
the program, `runs` finds equal messages in one, and `sp` cuts a peer's stream into batches.
"""

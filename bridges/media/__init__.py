"""The media that a bridge can join: what all links share, and a folder for each."""

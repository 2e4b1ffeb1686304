"""Tasks for annotation tools, and their answers as corrections."""

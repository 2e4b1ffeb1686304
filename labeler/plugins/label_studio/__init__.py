"""Label Studio: tasks for people, and their answers as corrections."""

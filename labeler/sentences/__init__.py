"""Examples and their keyed sentences.

``example`` defines both and the keys, ``splitting`` holds the splitters. ``words`` and
``statements`` analyze text, ``characters`` escapes unsafe text.
"""

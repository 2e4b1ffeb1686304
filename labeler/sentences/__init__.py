"""Examples and their keyed sentences.

``example`` defines both, ``keys`` the keys, ``splitting`` holds the splitters. ``words`` and
``statements`` analyze text, ``characters`` escapes unsafe text.
"""

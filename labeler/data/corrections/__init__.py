"""People's corrections of labels.

``correction`` defines one correction, ``file`` stores them, ``applying`` makes corrected labels of
the decisions of one or several people.
"""
